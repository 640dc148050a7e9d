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

// WithRounds is the end of the caption of a chart of medians.
const WithRounds = ": medians with their 95 % intervals, every round as a dot."

// Add appends an estimate. In a chart of intervals it also appends every round. It skips
// unknown values.
func (c *Chart) Add(at Datum, e figure.Estimate, rounds []figure.Round) {
	if !e.Known() || !stat.Finite(e.Value) {
		return
	}
	if c.Kind == Intervals {
		for _, r := range rounds {
			if dot := at; stat.Finite(r.Value) {
				dot.Bound = "" // a bound holds for most rounds, not for each one
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

// Figure appends a figure; see [Chart.Add].
func (c *Chart) Figure(panel, group, series string, f *figure.Figure) {
	at := At(panel, group, series)
	at.Bound = f.Bound()
	c.Add(at, f.Estimate, f.Rounds)
}

// Rows appends the figures of a table; see [Chart.Add].
func (c *Chart) Rows(t figure.Rows) *Chart {
	for _, row := range t.Rows {
		for i, f := range row.Of {
			c.Figure("", row.Name, t.Names[i], f)
		}
	}
	return c
}

// mostSteps is the maximum number of steps of one distribution.
const mostSteps = 500

// Distribution appends the cumulative distribution of the values, one step per value. More
// than mostSteps values become as many quantiles.
func (c *Chart) Distribution(at Datum, values []float64) {
	values = slices.Sorted(slices.Values(values))
	steps := min(len(values), mostSteps)
	for i := 1; i <= steps; i++ {
		n := i * len(values) / steps // number of values up to this step
		at.X, at.Y = values[n-1], float64(n)/float64(len(values))
		c.Data = append(c.Data, at)
	}
}

// Draw appends the charts that have data to a section.
func (s *Section) Draw(charts ...*Chart) {
	for _, c := range charts {
		if c == nil || len(c.Data) == 0 {
			continue
		}
		c.thin()
		if slices.ContainsFunc(c.Data, func(d Datum) bool { return d.Bound != "" }) {
			c.Caption += " A triangle marks a bound: the actual value lies in the direction it points."
		}
		for _, of := range []func(*Datum) string{func(d *Datum) string { return d.Panel }, func(d *Datum) string { return d.Series }} {
			if names := distinct(c.Data, of); len(names) == 1 { // the chart has no legend for a single name
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

// widest is the ratio of the largest to the smallest value above which small values are
// indistinguishable on a linear axis.
const widest = 30

// wide reports whether values need, and allow, a logarithmic axis.
func wide(values []float64) bool {
	least, most := Range(values)
	return least > 0 && most > widest*least
}

// thin drops points of crowded charts until at most MostData are left: dots of rounds, steps
// of distributions and points of lines. It keeps all estimates, all bars, and the first and
// the last point of each series.
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
	every := 1 + spare/max(MostData-(len(c.Data)-spare)-2*len(all), 1) // keeps the first and the last of each course
	seen := map[Datum]int{}
	c.Data = slices.DeleteFunc(c.Data, func(d Datum) bool {
		if !courses && !d.Round {
			return false
		}
		n := seen[of(&d)]
		seen[of(&d)]++
		return n%every != 0 && n != all[of(&d)]-1
	})
	c.Caption += fmt.Sprintf(" Of %d points, one in %d is drawn.", spare, every)
}

// Against shows figures as multiples of the baseline target's. It returns nil if nothing was
// compared.
func Against(name string, t figure.Rows) *Chart {
	if t.At < 0 {
		return nil
	}
	base := Heading(t.Names[t.At])
	c := &Chart{Name: name, Title: "Compared with " + base, Kind: Intervals, Y: Axis{Title: "multiple of " + base, Unit: figure.Ratio}}
	for _, row := range t.Rows {
		for i, f := range row.Of {
			if i == t.At || f == nil || f.Versus == nil {
				continue
			}
			at, v := At("", row.Name, t.Names[i]), f.Versus
			at.Text, at.Bound = string(v.Verdict), v.Bound
			c.Add(at, v.Ratio(), nil)
			c.Rules = []Rule{{Value: 1 - v.Margin}, {Value: 1, Text: base}, {Value: 1 + v.Margin}}
			c.Caption = fmt.Sprintf("Each figure as a multiple of %s, with its 95 %% interval. Within %.3g %% of 1 counts as the same.", base, 100*v.Margin)
		}
	}
	return c
}

// Fold keeps the n largest series. A stacked chart adds the others up as one more series, so
// that its totals stay the same. Other charts drop them.
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
		c.Caption += " The " + rest + " are smaller and not shown."
		return
	}
	for _, at := range places {
		c.Add(At(at.Panel, at.Group, rest), figure.Exactly(sum[at]), nil)
	}
}
