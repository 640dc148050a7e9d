package overhead

import (
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// courses shows memory and CPU of every target over time.
func courses(t *Table, first bool, o page.Options) *page.Section {
	m := page.Names("target", "")
	var rows figure.Set
	for c := range ledger.Each(t.Cells) {
		target := targetCell(c)
		for _, d := range coursesOf(c, o.Verbose) {
			m.Row(target, page.Words(page.Heading(d.Labels.Get("series"))))
			rows = append(rows, d)
			target.Head = ""
		}
	}
	if rows == nil {
		return nil
	}
	s := titled(t, "over time")
	m.AddSeries("", page.Each(rows, func(d *figure.Figure) page.Cell { return page.Cell{Figure: d} }))
	m.Add("min…max", page.Each(rows, func(d *figure.Figure) page.Cell {
		lo, hi := page.Range(d.Series.Values)
		show, unit := unitOf(d.Unit)
		low, high := show(lo), show(hi)
		if low == high {
			return page.Cell{Head: low, Tail: unit}
		}
		return page.Cell{Head: low + "…" + high, Tail: unit}
	}))
	m.Add("time", page.Each(rows, func(d *figure.Figure) page.Cell {
		return page.Words(page.Duration(1e9 * d.Series.Times[len(d.Series.Times)-1])) // never empty, see overTime
	}))
	m.AddIf("missed", page.Each(rows, func(d *figure.Figure) page.Cell {
		return orDot(d.Series.Missed != 0, strconv.Itoa(d.Series.Missed))
	}))
	s.Draw(courseCharts(t)...)
	var notes lines
	notes.addIf(first, "charge of the sandboxes' own cgroups, pod and overhead, in the round of the tables; scaled from the minimum to the maximum, a steady line is flat")
	notes.addIf(first && slices.ContainsFunc(rows, func(d figure.Figure) bool { return d.Series.Missed > 0 }), "missed: samples that could not be read in time")
	s.Table, s.Notes = m, notes
	return s
}

// coursesOf returns memory and CPU charged to the sandboxes' own groups over time, or all
// series.
func coursesOf(c *Cell, all bool) (out figure.Set) {
	if all {
		return c.Series
	}
	for _, l := range []struct{ name, pod, overhead string }{
		{"memory", record.SeriesPodMemory, record.SeriesOverheadMemory},
		{"CPU", record.SeriesPodCPU, record.SeriesOverheadCPU},
	} {
		pod, overhead := c.Series.Of("over-time", "series", l.pod), c.Series.Of("over-time", "series", l.overhead)
		if pod.Series == nil {
			pod, overhead = overhead, pod
		}
		if pod.Series != nil {
			out = append(out, together(l.name, pod, overhead))
		}
	}
	return out
}

// together adds two series with the same sample times, under another name. The other one may
// be missing.
func together(name string, one, other *figure.Figure) figure.Figure {
	f := *one
	f.Labels = f.Labels.With("series", name)
	if other.Series != nil && slices.Equal(one.Series.Times, other.Series.Times) && len(one.Series.Values) == len(other.Series.Values) {
		sum := *one.Series
		sum.Values = slices.Clone(sum.Values)
		for i, v := range other.Series.Values {
			sum.Values[i] += v
		}
		f.Series = &sum
	}
	return f
}

func unitOf(unit figure.Unit) (show func(float64) string, name string) {
	switch unit {
	case figure.Bytes:
		return page.MiB[float64], "MiB"
	case figure.BytesPerSec:
		return page.MiB[float64], "MiB/s"
	case figure.CPUs:
		return page.Milli, "m"
	}
	return func(v float64) string { return ratio(v, "%.2f") }, ""
}
