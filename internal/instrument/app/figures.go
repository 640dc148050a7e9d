package app

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// values are those of a row, round by round.
type values struct {
	throughput, ready, first, errored, all, client, beside, busy, steal stat.Rounds
	latency                                                             []stat.Rounds
	roles                                                               map[record.Role]stat.Rounds
	pressed                                                             map[[2]string]stat.Rounds
}

func newValues() *values {
	v := &values{stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{},
		nil, map[record.Role]stat.Rounds{}, map[[2]string]stat.Rounds{}}
	for range quantiles {
		v.latency = append(v.latency, stat.Rounds{})
	}
	return v
}

// add takes a window with so many answers.
func (v *values) add(w *Window, answered int64) {
	n, s := w.Round, w.Sent
	put(v.throughput, n, s.QPS)
	if s.Requests > 0 {
		put(v.errored, n, float64(s.Errors)/float64(s.Requests))
	}
	if w.Ready > 0 && w.Neighbour == "" { // a neighbour comes after the first answer
		put(v.ready, n, float64(w.Ready-w.Start))
		if w.First > 0 { // only a request has a time of its own
			put(v.first, n, float64(w.First))
		}
	}
	if answered > 0 {
		for i, q := range quantiles {
			put(v.latency[i], n, float64(q.of(s)))
		}
		v.cpu(w, float64(answered))
	}
	if w.BesideCPU != nil && w.Seen.Took > 0 {
		put(v.beside, n, float64(*w.BesideCPU)/float64(w.Seen.Took))
	}
	put(v.busy, n, w.Seen.Busy)
	put(v.steal, n, w.Seen.Steal)
	if w.Seen.HavePSI {
		v.press("node", n, &Pressure{w.Seen.PSICPU, w.Seen.PSIMemory, w.Seen.PSIIO})
	}
	v.press("workload", n, w.Own)
	v.press("neighbour", n, w.Beside)
}

// cpu adds what roles used for a request. What every sandbox of the target has together
// is among it: a daemon's time is its whole.
func (v *values) cpu(w *Window, answered float64) {
	put(v.client, w.Round, float64(w.ClientCPU)/answered)
	if len(w.Seen.CPU) == 0 {
		return
	}
	var sum float64
	for _, t := range w.Seen.CPU {
		each := float64(t.NS) / answered
		sum += each
		if v.roles[t.Role] == nil {
			v.roles[t.Role] = stat.Rounds{}
		}
		put(v.roles[t.Role], w.Round, each)
	}
	if !w.CPUPartly {
		put(v.all, w.Round, sum)
	}
}

func (v *values) press(of string, round int, p *Pressure) {
	if p == nil {
		return
	}
	for resource, share := range map[string]float64{"cpu": p.CPU, "memory": p.Memory, "io": p.IO} {
		key := [2]string{of, resource}
		if v.pressed[key] == nil {
			v.pressed[key] = stat.Rounds{}
		}
		put(v.pressed[key], round, share)
	}
}

// figures gives the row its own.
func (v *values) figures(r *Row) {
	r.Throughput = r.about("throughput", figure.PerSecond, figure.More, v.throughput)
	r.Throughput.Failed, r.Throughput.Total = int(r.Errors), int(r.Requests)
	for i, q := range quantiles {
		r.Latency = append(r.Latency, r.about("latency", figure.Nanoseconds, figure.Less, v.latency[i], "quantile", q.Name))
	}
	r.Ready = r.about("first-answer", figure.Nanoseconds, figure.Less, v.ready)
	if r.AtMost > r.Asked/2 {
		r.Ready.AtMost, r.Ready.Verdict = true, figure.AtMost
	}
	r.First = r.about("first-request", figure.Nanoseconds, figure.Less, v.first)
	r.Errored = r.about("errors", figure.Ratio, figure.Less, v.errored)
	perRequest := func(role record.Role, values stat.Rounds) RoleCPU {
		return RoleCPU{role, r.about("cpu-per-request", figure.Nanoseconds, figure.Less, values, "role", string(role))}
	}
	r.CPU = []RoleCPU{perRequest(allRoles, v.all)}
	for _, role := range slices.SortedFunc(maps.Keys(v.roles), func(a, b record.Role) int {
		return cmp.Or(cmp.Compare(figure.Median(v.roles[b]).Value, figure.Median(v.roles[a]).Value), cmp.Compare(a, b))
	}) {
		r.CPU = append(r.CPU, perRequest(role, v.roles[role]))
	}
	r.ClientCPU = r.about("cpu-per-request", figure.Nanoseconds, "", v.client, "role", "client")
	r.BesideCPU = r.about("neighbour-cpu", figure.CPUs, "", v.beside)
	r.Busy = r.about("node-busy", figure.CPUs, figure.Less, v.busy)
	r.Steal = r.about("steal", figure.CPUs, figure.Less, v.steal)
	for _, of := range []string{"node", "workload", "neighbour"} {
		for _, resource := range []string{"cpu", "memory", "io"} {
			if values := v.pressed[[2]string{of, resource}]; values != nil {
				r.Pressed = append(r.Pressed, Pressed{of, resource, r.about("pressure", figure.Ratio, figure.Less, values, "of", of, "resource", resource)})
			}
		}
	}
}

// allRoles stands for all roles of a target together.
const allRoles record.Role = "all"

// about makes a figure of the row's, with more labels.
func (r *Row) about(quantity string, unit figure.Unit, better figure.Direction, values stat.Rounds, more ...string) figure.Figure {
	return figure.Figure{Experiment: Name, Quantity: quantity, Unit: unit, Better: better,
		Labels: figure.Of(append([]string{"target", r.Target, "neighbour", r.Neighbour}, more...)...), Rounds: figure.ByRound(values), Estimate: figure.Median(values)}
}

// Figures are all of the run's.
func (j *Judgement) Figures() (all []figure.Figure) {
	for i := range j.Tables {
		for _, r := range j.Tables[i].Rows {
			all = append(all, r.Throughput)
			all = append(all, r.Latency...)
			all = append(all, r.Errored)
			for _, f := range []figure.Figure{r.Ready, r.First} {
				if f.Known() {
					all = append(all, f)
				}
			}
			for _, c := range r.CPU {
				all = append(all, c.Figure)
			}
			all = append(all, r.ClientCPU, r.Busy, r.Steal)
			for _, p := range r.Pressed {
				all = append(all, p.Figure)
			}
			for _, f := range []figure.Figure{r.Kept, r.P99OfAlone, r.OfHost, r.BesideCPU} {
				if f.Known() {
					all = append(all, f)
				}
			}
		}
	}
	return all
}

// Result is how many windows failed of how many, and what is to be mistrusted.
func (j *Judgement) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Found
}
