package app

import (
	"cmp"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// figures makes those of the row from its windows.
func (r *Row) figures() {
	ns := func(quantity string, of func(*Window) float64, more ...string) figure.Figure {
		return r.over(quantity, figure.Nanoseconds, figure.Less, of, more...)
	}
	r.Throughput = r.over("throughput", figure.PerSecond, figure.More, func(w *Window) float64 { return w.Sent.QPS })
	r.Throughput.Failed, r.Throughput.Total = int(r.Errors), int(r.Requests)
	for _, q := range quantiles {
		r.Latency = append(r.Latency, ns("latency", func(w *Window) float64 { return ifKnown(w.answers() > 0, q.of(w.Sent)) }, "quantile", q.Name))
	}
	// A neighbour comes after the first answer, and only a request has a time of its own.
	ready := func(w *Window) bool { return w.Ready > 0 && w.Neighbour == "" }
	r.Ready = ns("first-answer", func(w *Window) float64 { return ifKnown(ready(w), w.Ready-w.Start) })
	if r.AtMost > r.Asked/2 {
		r.Ready.AtMost, r.Ready.Verdict = true, figure.AtMost
	}
	r.First = ns("first-request", func(w *Window) float64 { return ifKnown(ready(w) && w.First > 0, w.First) })
	r.Errored = r.over("errors", figure.Ratio, figure.Less, func(w *Window) float64 { return float64(w.Sent.Errors) / float64(w.Sent.Requests) })
	perRequest := func(role record.Role) figure.Figure {
		return ns("cpu-per-request", func(w *Window) float64 { return w.used(role) / float64(w.answers()) }, "role", string(role))
	}
	for _, w := range r.windows {
		for _, t := range w.Seen.CPU {
			if w.answers() > 0 && r.role(t.Role).Quantity == "" {
				r.CPU = append(r.CPU, perRequest(t.Role))
			}
		}
	}
	slices.SortFunc(r.CPU, func(a, b figure.Figure) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Labels.Get("role"), b.Labels.Get("role")))
	})
	r.CPU = slices.Insert(r.CPU, 0, perRequest(allRoles))
	r.ClientCPU = ns("cpu-per-request", func(w *Window) float64 { return float64(w.ClientCPU) / float64(w.answers()) }, "role", "client")
	r.BesideCPU = r.over("neighbour-cpu", figure.CPUs, "", func(w *Window) float64 {
		if w.BesideCPU == nil {
			return math.NaN()
		}
		return float64(*w.BesideCPU) / float64(w.Seen.Took)
	})
	r.ClientCPU.Better = ""
	r.Busy = r.over("node-busy", figure.CPUs, figure.Less, func(w *Window) float64 { return w.Seen.Busy })
	r.Steal = r.over("steal", figure.CPUs, figure.Less, func(w *Window) float64 { return w.Seen.Steal })
	for _, of := range waiters {
		for _, resource := range resources {
			share := r.over("pressure", figure.Ratio, figure.Less, func(w *Window) float64 { return w.pressure(of, resource) }, "of", of, "resource", resource)
			if share.Known() {
				r.Pressed = append(r.Pressed, share)
			}
		}
	}
}

// allRoles stands for all roles of a target together.
const allRoles record.Role = "all"

// used is the CPU time of a role, ns, or of all where it is known of each. What every
// sandbox of the target has together is among it: a daemon's time is its whole.
func (w *Window) used(role record.Role) float64 {
	sum, known := int64(0), false
	for _, t := range w.Seen.CPU {
		if role == t.Role || role == allRoles {
			sum, known = sum+t.NS, true
		}
	}
	return ifKnown(known && !(role == allRoles && w.CPUPartly), sum)
}

// Who waits, and for what.
var (
	waiters   = []string{"node", "workload", "neighbour"}
	resources = []string{"cpu", "memory", "io"}
)

// pressure is for which share of the window one of the waiters waited for something.
func (w *Window) pressure(of, resource string) float64 {
	p := map[string]*Pressure{"workload": w.Own, "neighbour": w.Beside}[of]
	if of == "node" && w.Seen.HavePSI {
		p = &Pressure{w.Seen.PSICPU, w.Seen.PSIMemory, w.Seen.PSIIO}
	}
	if p == nil {
		return math.NaN()
	}
	return map[string]float64{"cpu": p.CPU, "memory": p.Memory, "io": p.IO}[resource]
}

// ifKnown is a value, or no number where it is not known.
func ifKnown(known bool, v int64) float64 {
	if !known {
		return math.NaN()
	}
	return float64(v)
}

// over is a figure of what the windows have of something; those are left out of which it is
// no number.
func (r *Row) over(quantity string, unit figure.Unit, better figure.Direction, of func(*Window) float64, more ...string) figure.Figure {
	values := stat.Rounds{}
	for _, w := range r.windows {
		if v := of(w); stat.Finite(v) {
			values[w.Round] = v
		}
	}
	return r.about(quantity, unit, better, values, more...)
}

// about makes a figure of the row's, with more labels.
func (r *Row) about(quantity string, unit figure.Unit, better figure.Direction, values stat.Rounds, more ...string) figure.Figure {
	return figure.Figure{Experiment: Name, Quantity: quantity, Unit: unit, Better: better,
		Labels: figure.Of(append([]string{"target", r.Target, "neighbour", r.Neighbour}, more...)...), Rounds: figure.ByRound(values), Estimate: figure.Median(values)}
}

// Figures are all of the run's.
func (j *Judgement) Figures() (all []figure.Figure) {
	known := func(some ...figure.Figure) {
		all = append(all, slices.DeleteFunc(some, func(f figure.Figure) bool { return !f.Known() })...)
	}
	for i := range j.Tables {
		for _, r := range j.Tables[i].Rows {
			all = append(all, r.Throughput)
			all = append(all, r.Latency...)
			all = append(all, r.Errored)
			known(r.Ready, r.First)
			all = append(all, r.CPU...)
			all = append(all, r.ClientCPU, r.Busy, r.Steal)
			all = append(all, r.Pressed...)
			known(r.Kept, r.P99OfAlone, r.OfHost, r.BesideCPU)
		}
	}
	return all
}

// Result is how many windows failed of how many, and what is to be mistrusted.
func (j *Judgement) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Found
}
