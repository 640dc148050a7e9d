package page

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
)

// WithRounds ends the caption of a chart of medians.
const WithRounds = ": medians with their 95 % intervals, every round as a dot."

// Add appends an estimate, and where the chart is one of intervals every round of it.
// What is not known is left out.
func (c *Chart) Add(at Datum, e figure.Estimate, rounds []figure.Round) {
	if !e.Known() || !stat.Finite(e.Value) {
		return
	}
	if c.Kind == Intervals {
		for _, r := range rounds {
			if dot := at; stat.Finite(r.Value) {
				dot.Bound = "" // is of most of the rounds, and not known of each
				dot.Y, dot.Round, dot.Text = r.Value, true, fmt.Sprintf("round %d", r.Round+1)
				c.Data = append(c.Data, dot)
			}
		}
	}
	at.Y = e.Value
	if e.Bounded && stat.Finite(e.Lo) && stat.Finite(e.Hi) {
		at.Lo, at.Hi = e.Lo, e.Hi
	}
	c.Data = append(c.Data, at)
}

// Figure appends a figure, see [Chart.Add].
func (c *Chart) Figure(panel, group, series string, f *figure.Figure) {
	at := At(panel, group, series)
	at.Bound = f.Bound()
	c.Add(at, f.Estimate, f.Rounds)
}

// Rows appends the figures of a table, see [Chart.Add].
func (c *Chart) Rows(t figure.Rows) *Chart {
	for _, row := range t.Rows {
		for i, f := range row.Of {
			c.Figure("", row.Name, t.Names[i], f)
		}
	}
	return c
}

// mostSteps are those of one distribution.
const mostSteps = 500

// Distribution appends how the values are distributed: of each step at which part of
// them it is. Of more than mostSteps it is as many quantiles.
func (c *Chart) Distribution(at Datum, values []float64) {
	values = slices.Sorted(slices.Values(values))
	steps := min(len(values), mostSteps)
	for i := 1; i <= steps; i++ {
		n := i * len(values) / steps // so many are no larger
		at.X, at.Y = values[n-1], float64(n)/float64(len(values))
		c.Data = append(c.Data, at)
	}
}

// Draw puts charts on a section, those that show something.
func (s *Section) Draw(charts ...*Chart) {
	for _, c := range charts {
		if c == nil || len(c.Data) == 0 {
			continue
		}
		c.thin()
		if slices.ContainsFunc(c.Data, func(d Datum) bool { return d.Bound != "" }) {
			c.Caption += " A triangle is a bound: the value may lie anywhere where it points."
		}
		for _, of := range []func(*Datum) string{func(d *Datum) string { return d.Panel }, func(d *Datum) string { return d.Series }} {
			if names := distinct(c.Data, of); len(names) == 1 { // nothing else in the picture says it
				c.Title = Dotted(c.Title, names[0])
			}
		}
		switch c.Kind {
		case Intervals:
			c.Y.Log = wide(c.along(false))
		case Cumulative:
			c.X.Log = wide(c.along(true))
		}
		s.Charts = append(s.Charts, c)
	}
}

// widest is how many times the least value the largest may be before the small ones
// can no longer be told apart on a linear axis.
const widest = 30

// wide tells whether values call for a logarithmic axis, and can have one.
func wide(values []float64) bool {
	least, most := Range(values)
	return least > 0 && most > widest*least
}

// thin leaves out data that stand between others of their own, until there are few
// enough: dots of rounds, steps of distributions and points of lines. Estimates, bars and
// the ends of each course are never left out, however many there are.
func (c *Chart) thin() {
	if len(c.Data) <= MostData {
		return
	}
	courses, all, spare := c.Kind == Cumulative || c.Kind == Lines, map[Datum]int{}, 0
	of := func(d *Datum) Datum { return Datum{Panel: d.Panel, Group: d.Group, Series: d.Series} }
	for i := range c.Data {
		if d := &c.Data[i]; courses || d.Round {
			all[of(d)]++
			spare++
		}
	}
	if spare == 0 {
		return
	}
	every := 1 + spare/max(MostData-(len(c.Data)-spare)-2*len(all), 1) // the first and the last of each stay
	seen := map[Datum]int{}
	c.Data = slices.DeleteFunc(c.Data, func(d Datum) bool {
		if !courses && !d.Round {
			return false
		}
		n := seen[of(&d)]
		seen[of(&d)]++
		return n%every != 0 && n != all[of(&d)]-1
	})
	c.Caption += fmt.Sprintf(" Of %d points one of %d is drawn.", spare, every)
}

// Against shows how many times those of the target at their place figures are; nil
// where nothing was compared.
func Against(name string, t figure.Rows) *Chart {
	if t.At < 0 {
		return nil
	}
	base := Heading(t.Names[t.At])
	c := &Chart{Name: name, Title: "Compared with " + base, Kind: Intervals, Y: Axis{Title: "times that of " + base, Unit: figure.Ratio}}
	for _, row := range t.Rows {
		for i, f := range row.Of {
			if i == t.At || f == nil || f.Versus == nil {
				continue
			}
			at, v := At("", row.Name, t.Names[i]), f.Versus
			at.Text, at.Bound = string(v.Verdict), v.Bound
			c.Add(at, v.Ratio(), nil)
			c.Rules = []Rule{{Value: 1 - v.Margin}, {Value: 1, Text: base}, {Value: 1 + v.Margin}}
			c.Caption = fmt.Sprintf("How many times that of %s each figure is, with the 95 %% interval; within %.3g %% of once it is the same.", base, 100*v.Margin)
		}
	}
	return c
}

// Fold keeps the n series that come to most. In a stacked chart the others are one
// more, so that what is stacked is the same; in others they are left out.
func (c *Chart) Fold(n int) {
	total := map[string]float64{}
	for _, d := range c.Data {
		total[d.Series] += math.Abs(d.Y)
	}
	if len(total) <= n {
		return
	}
	largest := slices.SortedFunc(maps.Keys(total), func(a, b string) int { return cmp.Or(cmp.Compare(total[b], total[a]), strings.Compare(a, b)) })
	rest, sum := fmt.Sprintf("%d others", len(total)-n), map[Datum]float64{}
	var places []Datum
	c.Data = slices.DeleteFunc(c.Data, func(d Datum) bool {
		if slices.Contains(largest[:n], d.Series) {
			return false
		}
		at := Datum{Panel: d.Panel, Group: d.Group}
		if _, ok := sum[at]; !ok {
			places = append(places, at)
		}
		sum[at] += d.Y
		return true
	})
	if c.Kind != Stacked {
		c.Caption += " The " + rest + " are less and left out."
		return
	}
	for _, at := range places {
		c.Add(At(at.Panel, at.Group, rest), figure.Exactly(sum[at]), nil)
	}
}
