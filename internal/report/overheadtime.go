package report

import (
	"math"
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// How wide a sparkline is: what the page leaves, but within these.
const (
	leastLine = 12
	mostLine  = 48
)

// drawn is one line of the section over time.
type drawn struct {
	name   string
	values []float64
	unit   string
	last   float64 // s
	missed int
}

// overTime is a sparkline for the memory and the CPU of every target.
func overTime(t *judge.OverheadTable, first bool, o Options) *section {
	m := &matrix{lead: []term.Column{{Title: "target"}, {}}}
	var rows []drawn
	for i := range t.Cells {
		c := &t.Cells[i]
		target := targetCell(c)
		for _, d := range lines(c, o.Verbose) {
			m.rows = append(m.rows, matrixRow{lead: []cell{target, plain(d.name)}})
			rows = append(rows, d)
			target.head = ""
		}
	}
	if rows == nil {
		return nil
	}
	s := titled(t, "over time")
	ranges := each(rows, func(d *drawn) cell {
		lo, hi := rangeOf(d.values)
		if math.IsNaN(lo) {
			return plain("not read")
		}
		show, unit := unitOf(d.unit)
		low, high := show(lo), show(hi)
		if low == high {
			return cell{head: low, tail: unit}
		}
		return cell{head: low + "…" + high, tail: unit}
	})
	missed := each(rows, func(d *drawn) cell {
		if d.missed == 0 {
			return plain(dot)
		}
		return plain(strconv.Itoa(d.missed))
	})
	took := each(rows, func(d *drawn) cell { return plain(duration(1e9 * d.last)) })
	rest := *m // without the lines, to know what it leaves them
	rest.rows = slices.Clone(m.rows)
	rest.column("min…max", ranges)
	rest.column("time", took)
	rest.onlyIf("missed", missed)
	width := mostLine
	if o.Width > 0 {
		width = min(max(o.Width-indent-gap-rest.spread().whole().width(false), leastLine), mostLine)
	}
	m.text("", each(rows, func(d *drawn) cell { return plain(sparkline(d.values, width)) }))
	m.column("min…max", ranges)
	m.column("time", took)
	m.onlyIf("missed", missed)
	s.table = m.spread()
	if first {
		s.notes = []string{"what the sandboxes' own cgroups, pod and overhead, were charged for, in the round of the tables; from the least at the bottom to the most at the top, a steady line flat"}
	}
	if first && slices.ContainsFunc(rows, func(d drawn) bool { return d.missed > 0 }) {
		s.notes = append(s.notes, "missed: ticks at which nothing could be read in time")
	}
	return s
}

// lines are the memory and the CPU that the sandboxes' own groups were charged
// for, or every series there is.
func lines(c *judge.OverheadCell, all bool) (out []drawn) {
	if all {
		for i := range c.Trace {
			out = append(out, lineOf(heading(c.Trace[i].Name), &c.Trace[i], nil))
		}
		return out
	}
	for _, l := range []struct{ name, pod, overhead string }{
		{"memory", record.SeriesPodMemory, record.SeriesOverheadMemory},
		{"CPU", record.SeriesPodCPU, record.SeriesOverheadCPU},
	} {
		pod, overhead := traceOf(c, l.pod), traceOf(c, l.overhead)
		if pod == nil {
			pod, overhead = overhead, nil
		}
		if pod != nil {
			out = append(out, lineOf(l.name, pod, overhead))
		}
	}
	return out
}

func traceOf(c *judge.OverheadCell, name string) *judge.Trace {
	i := slices.IndexFunc(c.Trace, func(t judge.Trace) bool { return t.Name == name })
	if i < 0 || !slices.ContainsFunc(c.Trace[i].Values, finite) {
		return nil
	}
	return &c.Trace[i]
}

// lineOf adds two series that were read at the same ticks.
func lineOf(name string, one, other *judge.Trace) drawn {
	d := drawn{name: name, values: one.Values, unit: one.Unit, missed: one.Missed}
	if n := len(one.Times); n > 0 {
		d.last = one.Times[n-1]
	}
	if other != nil && slices.Equal(one.Times, other.Times) && len(one.Values) == len(other.Values) {
		d.values = slices.Clone(one.Values)
		for i, v := range other.Values {
			d.values[i] += v
		}
	}
	return d
}

func unitOf(unit string) (show func(float64) string, name string) {
	switch unit {
	case "bytes":
		return mib[float64], "MiB"
	case "bytes/s":
		return mib[float64], "MiB/s"
	case "cpus":
		return milli, "m"
	case "load":
		return func(v float64) string { return ratio(v, "%.2f") }, ""
	}
	return func(v float64) string { return ratio(v, "%.4g") }, heading(unit)
}
