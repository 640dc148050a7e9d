package page

import (
	"fmt"
	"math"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// Text writes a value in its unit, as a reader wants it: ns as "24.6 ms".
func Text(v float64, unit figure.Unit) string {
	switch unit {
	case figure.Nanoseconds:
		return Duration(v)
	case figure.Bytes:
		return Size(v)
	case figure.CPUs:
		return Milli(v) + " m"
	case figure.BytesPerSec:
		return Megabytes(v) + " MB/s"
	}
	return Significant(v)
}

// Median is a figure with the larger half of its interval, behind how many of its
// attempts failed: failures stand first, so that figures stay in line.
func Median(f *figure.Figure) Cell {
	c := Cell{Head: None, Figure: f}
	if f.Estimate.Known() {
		c.Head, c.Tail = Text(f.Estimate.Value, f.Unit), HalfWidth(f.Estimate)
	}
	if f.Failed > 0 {
		failed := fmt.Sprintf("%d/%d failed", f.Failed, f.Total)
		if f.Estimate.Known() {
			failed += ", " + c.Head
		}
		c.Head, c.Style = failed, term.Red
	}
	return c
}

// HalfWidth is the larger half of an interval in percent of its value.
func HalfWidth(e figure.Estimate) string {
	if !e.Bounded || e.Value <= 0 {
		return "±?"
	}
	percent := 100 * max(e.Hi-e.Value, e.Value-e.Lo) / e.Value
	switch {
	case !stat.Finite(percent):
		return "±?"
	case percent > 0 && percent < 0.05:
		return "±0.0 %"
	case percent > 0 && percent < 0.95:
		return fmt.Sprintf("±%.1f %%", percent)
	}
	return fmt.Sprintf("±%.0f %%", percent)
}

// Change is a figure's comparison with the baseline as benchstat shows it: a tilde
// where no difference was shown.
func Change(f *figure.Figure) Cell {
	v := f.Versus
	switch {
	case v == nil || !f.Estimate.Known():
		return Words(None)
	case !stat.Finite(v.Delta) || !stat.Finite(v.P):
		return Words("?")
	}
	c := Cell{Head: "~", Tail: "(p<0.001)", Figure: f}
	if v.P >= 0.001 {
		c.Tail = fmt.Sprintf("(p=%.3f)", v.P)
	}
	if !v.Different {
		return c
	}
	c.Style = term.Green
	if v.Delta > 0 == (f.Better != figure.More) {
		c.Style = term.Red
	}
	switch size := math.Abs(100 * v.Delta); {
	case size >= 999.5:
		c.Head = fmt.Sprintf("%+.0f %%", 100*v.Delta)
	case size < 0.095:
		c.Head = fmt.Sprintf("%+.2f %%", 100*v.Delta)
	default:
		c.Head = fmt.Sprintf("%+.1f %%", 100*v.Delta)
	}
	return c
}

// Value is a figure alone, shown as the table says: its interval would make a
// table of many columns wide.
func Value(f *figure.Figure, show func(float64) string) Cell {
	if f == nil || !f.Estimate.Known() || !stat.Finite(f.Estimate.Value) {
		return Words(None)
	}
	return Cell{Head: show(f.Estimate.Value), Figure: f}
}

// Versus is the report's own form of a comparison: the ratio of two trimmed means.
func Versus(from, to *figure.Figure) Cell {
	if !from.Estimate.Known() || !to.Estimate.Known() {
		return Words(None)
	}
	return Cell{Head: stat.FormatVersus(from.Estimate.Value, to.Estimate.Value), Figure: to}
}
