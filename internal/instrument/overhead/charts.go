package overhead

import (
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
)

// memoryChart shows memory by role in every phase: the change of the node's memory, without
// other processes.
func memoryChart(j *Judgement) *page.Chart {
	c := &page.Chart{
		Name: "memory-by-role", Title: "Memory by role", Kind: page.Stacked,
		Caption: "Change in node memory by role, without other processes, in the round of the tables; the unexplained part is the residual.",
		X:       page.Axis{Title: "target"}, Y: page.Axis{Title: "memory", Unit: figure.Bytes},
	}
	for t, of := range j.cells() {
		l := &of.Ledger
		add := func(series string, bytes int64) {
			if bytes != 0 {
				c.Add(page.At(t.heading(), of.Target, series), figure.Exactly(float64(bytes)), nil)
			}
		}
		for _, role := range rolesIn(t) {
			add(string(role), rowOf(l, role).Memory.Sum())
		}
		add("uncharged", l.Uncharged)
		add("residual", l.Residual)
	}
	return c
}

// sumsChart shows one sum per phase and target, over the rounds.
func sumsChart(j *Judgement, name, quantity string) *page.Chart {
	c := &page.Chart{
		Name: name + "-by-phase", Title: "The sandboxes' " + name, Kind: page.Intervals,
		Caption: "The " + name + " of all roles together in each phase on each target" + page.WithRounds,
		X:       page.Axis{Title: "phase"}, Y: page.Axis{Title: name, Unit: Quantities.Quantity(quantity).Unit},
	}
	for t, cell := range j.cells() {
		c.Figure("", t.heading(), cell.Target, cell.All.Of(quantity))
	}
	return c
}

// courseCharts show the charge of the sandboxes' own cgroups over a phase.
func courseCharts(t *Table) (all []*page.Chart) {
	for c := range ledger.Each(t.Cells) {
		for _, d := range coursesOf(c, false) {
			name := d.Labels.Get("series")
			k := slices.IndexFunc(all, func(c *page.Chart) bool { return c.Y.Title == name })
			if k < 0 {
				k = len(all)
				all = append(all, &page.Chart{
					Name: "course-" + name, Title: t.heading() + ": " + name + " over time", Kind: page.Lines,
					Caption: "The " + name + " charged to the sandboxes' own cgroups over the phase, in the round of the tables.",
					X:       page.Axis{Title: "since the phase began", Unit: figure.Nanoseconds}, Y: page.Axis{Title: name, Unit: d.Unit},
				})
			}
			for n, seconds := range d.Series.Times {
				at := page.At("", "", c.Target)
				at.X = 1e9 * seconds
				all[k].Add(at, figure.Exactly(d.Series.Values[n]), nil)
			}
		}
	}
	return all
}
