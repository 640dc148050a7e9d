package compare

import (
	"math"

	"golang.org/x/perf/benchproc"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
)

// cell is a figure of one column, from one or several runs.
type cell struct {
	figure.Figure
	runs []int
	of   []*figure.Figure // one for each run
}

// finish computes the figure of the column. For several runs it is the median of their values.
func (c *cell) finish(col benchproc.Key) {
	c.Figure = *c.of[0]
	if len(c.of) > 1 {
		var medians []float64
		c.Rounds, c.Failed, c.Total, c.Reasons = nil, 0, 0, nil
		for _, f := range c.of {
			if f.AtMost {
				c.AtMost, c.Verdict = true, f.Verdict // an upper bound of one run makes the median a bound, too
			}
			if f.Known() {
				medians = append(medians, f.Value)
			}
			for _, r := range f.Rounds {
				c.Rounds = append(c.Rounds, figure.Round{Round: len(c.Rounds), Value: r.Value})
			}
			c.Failed, c.Total = c.Failed+f.Failed, c.Total+f.Total
		}
		c.Estimate = figure.MedianOf(medians)
	}
	for _, field := range col.Projection().FlattenedFields() {
		c.Labels = c.Labels.With(field.Name, col.Get(field))
	}
}

// values returns the values of the rounds, with a distinct key for each run and round. If runs
// are joined, a figure without rounds, such as a quantile, is one value of its run.
func (c *cell) values(joined bool) stat.Rounds {
	out := stat.Rounds{}
	for i, f := range c.of {
		for _, r := range f.Rounds {
			out[c.runs[i]*perRun+r.Round] = r.Value
		}
		if joined && len(f.Rounds) == 0 && f.Known() {
			out[c.runs[i]*perRun] = f.Value
		}
	}
	return out
}

// means computes the geometric mean of each column. It uses the rows that have a shift, values
// above 0 on both sides and no upper bound. A shift is estimated from all rounds. The mean
// ratio is therefore the geometric mean of the shifts, not the ratio of the medians.
func (t *Table) means() {
	t.Means = make([]Mean, len(t.Columns))
	for i := 1; i < len(t.Columns); i++ {
		m := &t.Means[i]
		for _, row := range t.Rows {
			base, f := row.Of[0], row.Of[i]
			if f == nil || f.Versus == nil || base.AtMost || f.AtMost || !(base.Value > 0 && f.Value > 0) {
				continue
			}
			if ratio := 1 + f.Versus.Shift.Value; f.Versus.Shift.Known() && ratio > 0 && stat.Finite(ratio) {
				m.Base, m.Value, m.Ratio, m.Rows = m.Base+math.Log(base.Value), m.Value+math.Log(f.Value), m.Ratio+math.Log(ratio), m.Rows+1
			}
		}
		n := float64(m.Rows)
		m.Base, m.Value, m.Ratio = math.Exp(m.Base/n), math.Exp(m.Value/n), math.Exp(m.Ratio/n)
	}
}
