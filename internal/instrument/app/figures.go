package app

import (
	"cmp"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// quantiles are the reported latency quantiles.
var quantiles = []string{"p50", "p90", p99, "p99.9", "max"}

// onlyKnown lists the quantities that are left out if unknown.
var onlyKnown = []string{"first-answer", "first-request", "pressure", "throughput-kept", "latency-times", "throughput-times", "neighbour-cpu"}

// figures returns the figures of the row. Figures that depend on other rows have no
// value yet.
func (r *row) figures() (all figure.Set) {
	over := func(quantity string, of func(*Window) float64, more ...string) figure.Figure {
		values := stat.Rounds{}
		for _, w := range r.windows {
			if v := of(w); stat.Finite(v) {
				values[w.Round] = v
			}
		}
		return Quantities.Over(quantity, figure.Of(append([]string{"target", r.target, "neighbour", r.neighbour}, more...)...), values)
	}
	put := func(quantity string, of func(*Window) float64, more ...string) *figure.Figure {
		all = append(all, over(quantity, of, more...))
		return &all[len(all)-1]
	}
	throughput := put("throughput", func(w *Window) float64 { return w.Sent.QPS })
	for _, w := range r.windows {
		throughput.Failed, throughput.Total = throughput.Failed+int(w.Sent.Errors), throughput.Total+int(w.Sent.Requests)
	}
	for i, name := range quantiles {
		put("latency", func(w *Window) float64 {
			return ifKnown(w.answers() > 0, []int64{w.Sent.P50, w.Sent.P90, w.Sent.P99, w.Sent.P999, w.Sent.Max}[i])
		}, "quantile", name)
	}
	put("errors", func(w *Window) float64 { return float64(w.Sent.Errors) / float64(w.Sent.Requests) })
	first := put("first-answer", func(w *Window) float64 { return ifKnown(w.ready(), w.Ready-w.Start) })
	if _, atMost, asked := polled(r.windows); atMost > asked/2 {
		first.AtMost, first.Verdict = true, figure.AtMost
	}
	put("first-request", func(w *Window) float64 { return ifKnown(w.ready() && w.First > 0, w.First) })
	perRequest := func(role record.Role) figure.Figure {
		return over("cpu-per-request", func(w *Window) float64 { return w.used(role) / float64(w.answers()) }, "role", string(role))
	}
	var cpu figure.Set
	for _, w := range r.windows {
		for _, t := range w.Seen.CPU {
			if w.answers() > 0 && cpu.Of("cpu-per-request", "role", string(t.Role)).Quantity == "" {
				cpu = append(cpu, perRequest(t.Role))
			}
		}
	}
	slices.SortFunc(cpu, func(a, b figure.Figure) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Labels.Get("role"), b.Labels.Get("role")))
	})
	all = append(append(all, perRequest(allRoles)), cpu...)
	client := put("cpu-per-request", func(w *Window) float64 { return float64(w.ClientCPU) / float64(w.answers()) }, "role", "client")
	client.Better = ""
	put("node-busy", func(w *Window) float64 { return w.Seen.Busy })
	put("steal", func(w *Window) float64 { return w.Seen.Steal })
	for _, of := range waiters {
		for _, resource := range resources {
			put("pressure", func(w *Window) float64 { return w.pressure(of, resource) }, "of", of, "resource", resource)
		}
	}
	none := func(*Window) float64 { return math.NaN() }
	put("throughput-kept", none)
	put("latency-times", none, "quantile", p99, "to", "alone")
	put("throughput-times", none, "to", host)
	put("neighbour-cpu", func(w *Window) float64 {
		if w.BesideCPU == nil {
			return math.NaN()
		}
		return float64(*w.BesideCPU) / float64(w.Seen.Took)
	})
	return all
}

// ready reports whether the window counts for the time of the first answer. Windows with
// a neighbour do not count, because the neighbour starts only after that answer.
func (w *Window) ready() bool { return w.Ready > 0 && w.Neighbour == "" }

// polled returns the precision of first answers: the worst resolution in ns, the number
// of upper bounds, and the total number. A workload that answers its first request has
// only an upper bound.
func polled(windows []*Window) (widest int64, atMost, asked int) {
	for _, w := range windows {
		switch {
		case !w.ready():
			continue
		case w.Unready > 0:
			widest = max(widest, w.Ready-w.Unready)
		default:
			atMost++
		}
		asked++
	}
	return widest, atMost, asked
}

// allRoles is the sum of a target's roles.
const allRoles record.Role = "all"

// used returns the CPU time of a role in ns. For allRoles it returns the sum, or NaN if
// the time of some role is unknown. A daemon's time is counted in full, although all
// sandboxes of the target share it.
func (w *Window) used(role record.Role) float64 {
	sum, known := int64(0), false
	for _, t := range w.Seen.CPU {
		if role == t.Role || role == allRoles {
			sum, known = sum+t.NS, true
		}
	}
	return ifKnown(known && !(role == allRoles && w.CPUPartly), sum)
}

// Values of the labels "of" and "resource" of the quantity pressure.
var (
	waiters   = []string{"node", "workload", "neighbour"}
	resources = []string{"cpu", "memory", "io"}
)

// pressure returns the share of the window in which some task of the node or of the given
// cgroups waited for a resource.
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

// ifKnown returns v, or NaN if it is unknown.
func ifKnown(known bool, v int64) float64 {
	if !known {
		return math.NaN()
	}
	return float64(v)
}

// Figures returns all figures of the run.
func (j *Judgement) Figures() []figure.Figure { return slices.Clone(j.All) }

// Result returns the number of failed windows, the total, and the findings.
func (j *Judgement) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Found
}
