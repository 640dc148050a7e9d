package storage

import (
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
)

// ratiosChart shows every figure relative to a base. The colour is the verdict, so that a
// figure of a cache is not mistaken for one of a disk.
func ratiosChart(j *Judgement, varied *varied, base string) *page.Chart {
	name := page.Heading(base)
	c := &page.Chart{
		Name: "ratio-and-verdict", Title: "× " + name + ", and what answered", Kind: page.Intervals,
		Caption: "How many times that of " + name + " each job's bandwidth is, or its IOPS where blocks are small, and what answered" + page.WithRounds,
		X:       page.Axis{Title: "job"}, Y: page.Axis{Title: "× " + name, Unit: figure.Ratio}, Rules: []page.Rule{{Value: 1, Text: name}},
	}
	for _, r := range j.measured() {
		if r.table.Base == base && r.compared() {
			c.Add(page.At(r.Target, varied.name(r.table), r.says()), r.ratio().Estimate, r.quotients())
		}
	}
	return c
}

// quotients returns each round's value divided by the base's value of that round.
func (c *Cell) quotients() (out []figure.Round) {
	base := c.table.base.primary().Values()
	for _, r := range c.primary().Rounds {
		if of := base[r.Round]; of > 0 {
			out = append(out, figure.Round{Round: r.Round, Value: r.Value / of})
		}
	}
	return out
}

// speedCharts shows the primary figures of jobs, one chart per unit.
func speedCharts(j *Judgement, varied *varied) (all []*page.Chart) {
	for _, r := range j.measured() {
		f := r.primary()
		k := slices.IndexFunc(all, func(c *page.Chart) bool { return c.Y.Unit == f.Unit })
		if k < 0 {
			k = len(all)
			all = append(all, &page.Chart{
				Name: f.Quantity, Title: f.Quantity + ", and what answered", Kind: page.Intervals,
				Caption: "The " + f.Quantity + " of each job on each target, and what answered" + page.WithRounds,
				X:       page.Axis{Title: "target"}, Y: page.Axis{Title: f.Quantity, Unit: f.Unit},
			})
		}
		all[k].Figure(varied.name(r.table), r.Target, r.says(), f)
	}
	return all
}
