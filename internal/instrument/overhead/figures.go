package overhead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// Figures returns all figures of the run. They cover phases and targets, the ledger of
// each median round, the cost of an extra sandbox, and recommended overheads.
func (j *Judgement) Figures() []figure.Figure {
	l := listed{runID: j.Record.Header.RunID}
	for t := range ledger.Each(j.Tables) {
		l.all = append(l.all, t.figures()...)
	}
	l.all = slices.Concat(l.all, j.Ratios, j.Around, j.Requests)
	for _, s := range j.Scaling {
		l.all = append(append(l.all, s.Slopes...), s.Fit)
	}
	for c := range ledger.Each(j.Classes) {
		l.labels = figure.Of("target", c.Target, "handler", c.Handler)
		l.add("pod-fixed", float64(c.Memory), "resource", "memory").Reasons = c.Rule
		cpu := l.add("pod-fixed", float64(c.CPU)/1000, "resource", "cpu")
		cpu.Unit, cpu.Reasons = figure.CPUs, c.Rule
	}
	for c := range ledger.Each(j.Check) {
		l.check(c)
	}
	return l.all
}

// listed collects figures. labels are those of all figures added next.
type listed struct {
	labels figure.Labels
	runID  string
	all    []figure.Figure
}

// add appends a figure that is not an estimate from several rounds.
func (l *listed) add(quantity string, v float64, labels ...string) *figure.Figure {
	l.all = append(l.all, Quantities.New(quantity, figure.Exactly(v), slices.Concat(l.labels, figure.Of(labels...))))
	return &l.all[len(l.all)-1]
}

// take appends figures of a ledger.
func (l *listed) take(all figure.Set) {
	for f := range ledger.Each(all) {
		added := l.add(f.Quantity, f.Value)
		added.Labels = append(added.Labels, f.Labels...)
	}
}

// kinds appends an amount of memory, one figure per kind.
func (l *listed) kinds(quantity string, m *ledger.Memory, labels ...string) {
	for _, k := range kindsOf(m) {
		l.add(quantity, float64(k.n), append(labels, "kind", k.name)...)
	}
}

// named is an amount with a name.
type named[N any] struct {
	name string
	n    N
}

// kindsOf returns an amount of memory by kind.
func kindsOf(m *ledger.Memory) []named[int64] {
	return []named[int64]{{"anon", m.Anon}, {"shmem", m.Shmem}, {"kernel", m.Kernel}, {"huge", m.Huge}, {"swap", m.Swap}, {"cache", m.Cache}}
}

// books appends all figures of one round's ledger.
func (l *listed) books(b *ledger.Ledger) {
	for r := range ledger.Each(b.Rows) {
		role := []string{"role", string(r.Role)}
		l.add("role-memory", float64(r.Memory.Sum()), role...).Reasons = r.Rules
		l.kinds("role-memory-of-kind", &r.Memory, role...)
		l.add("role-processes", float64(r.Processes), role...)
		if r.CPUKnown {
			if f := l.add("role-cpu", r.CPU, role...); r.GuestCPU {
				f.Reasons = []string{"includes the guest's work"}
			}
		}
	}
	l.charged(b)
	for g := range ledger.Each(b.Cgroups) {
		l.cgroup(g)
	}
	l.take(b.Engine)
	l.node(b)
}

// everyRound adds the values of the other rounds to the figures of the median round.
func (l *listed) everyRound(figures []figure.Figure, c *Cell) {
	for _, p := range c.counts {
		round := listed{labels: l.labels, runID: l.runID}
		round.books(&p.Ledger)
		values := map[string]float64{}
		for _, f := range round.all {
			values[f.Quantity+" "+f.Labels.String()] = f.Value
		}
		for f := range ledger.Each(figures) {
			if v, ok := values[f.Quantity+" "+f.Labels.String()]; ok {
				f.Rounds = append(f.Rounds, figure.Round{Round: p.Visit.Round, Value: v})
			}
		}
	}
}

// charged appends the figures of cgroup charges.
func (l *listed) charged(b *ledger.Ledger) {
	for g := range ledger.Each(b.Groups) {
		charge := []string{"charge", string(g.Charge)}
		l.add("groups", float64(g.Count), charge...)
		l.add("group-usage", float64(g.Usage), charge...).Reasons = g.Paths
		l.kinds("group-usage-of-kind", &g.Memory, charge...)
		l.take(g.Over)
	}
	for p := range ledger.Each(b.Places) {
		where := []string{"role", string(p.Role), "charge", string(p.Charge)}
		l.add("charged-memory", float64(p.Memory), where...).Reasons = []string{fmt.Sprintf("in %d cgroups, the first: %s", p.Count, p.Path)}
		l.add("charged-groups", float64(p.Count), where...)
		l.add("charged-processes", float64(p.Processes), where...)
	}
	l.take(b.Reconciled)
}

// around returns the path of a parent group with RUN for the run's id, so that it is the
// same in every run.
func around(path, runID string) string {
	if runID == "" {
		return path
	}
	return strings.ReplaceAll(path, runID, "RUN")
}

// cgroup appends the usage of one kind of cgroups. Their paths contain ids, so the labels
// are the kind and the roles.
func (l *listed) cgroup(g *ledger.Cgroup) {
	where := []string{"cgroup", string(g.Charge), "with", rolesText(g.Roles)}
	switch {
	case g.Around, g.Charge == record.ChargeShared:
		where = []string{"cgroup", around(g.Path, l.runID)}
	case g.Nested:
		where[1] += ", nested"
	}
	l.add("cgroups", float64(g.Count), where...)
	for _, u := range cgroupUsage {
		if v, known := g.Usage[u.usage]; known {
			l.add(u.quantity, v, append(where, "of", u.of)...)
		}
	}
}

// node appends the changes and the load of the node.
func (l *listed) node(b *ledger.Ledger) {
	for _, of := range []named[int64]{
		{"node", b.Node}, {"sum", b.Sum}, {"others", b.Others}, {"others by node", b.OthersNode}, {"uncharged", b.Uncharged},
		{"residual", b.Residual}, {"uncertainty", b.Uncertainty}, {"available", b.AvailableChange},
	} {
		l.add("node-change", float64(of.n), "of", of.name)
	}
	l.kinds("residual-of-kind", &b.ResidualBy)
	l.add("page-cache", float64(b.Cache.Node), "of", "node")
	l.add("page-cache", float64(b.Cache.Charged), "of", "charged")
	l.add("page-cache", float64(b.Cache.Mapped), "of", "mapped")
	l.take(b.Host)
	for _, p := range problemsOf(&b.Problems) {
		if p.n > 0 {
			l.add("not-read", float64(p.n), "of", p.name).Reasons = b.Problems.Examples
		}
	}
}

// check appends a checked overhead and what every phase needed.
func (l *listed) check(c *Check) {
	l.labels = figure.Of("target", c.Target)
	l.add("checked", float64(c.Memory), "resource", "memory").Verdict = string(c.Answer)
	cpu := l.add("checked", float64(c.CPU)/1000, "resource", "cpu")
	cpu.Unit, cpu.Verdict = figure.CPUs, string(c.Answer)
	for p := range ledger.Each(c.Phases) {
		l.labels = p.labels(c.Target)
		if p.Rounds == 0 {
			f := l.add("needed", float64(0), "resource", "memory")
			f.Estimate, f.Verdict = figure.Estimate{}, "not measured"
			continue
		}
		memory := l.add("needed", float64(p.Memory), "resource", "memory")
		if memory.Verdict = string(p.MemoryAnswer); p.Open != "" {
			memory.Reasons = []string{p.Open}
		}
		cpu := l.add("needed", p.CPU/1000, "resource", "cpu")
		cpu.Unit = figure.CPUs
		if cpu.Verdict = string(p.CPUAnswer); p.CPUAnswer == NotShown {
			cpu.Reasons = []string{"some of it is unknown"}
		}
	}
}
