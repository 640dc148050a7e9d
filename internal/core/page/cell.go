package page

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// Text formats a value with its unit: 24600000 ns as "24.6 ms".
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

// Median returns a figure with the larger half of its interval. The number of failed attempts
// comes first, so that the figures stay aligned.
func Median(f *figure.Figure) Cell {
	c := Cell{Head: None, Figure: f}
	if f.Estimate.Known() {
		c.Head, c.Tail = signs[f.Bound()]+Rounded(f.Estimate, func(v float64) string { return Text(v, f.Unit) }), HalfWidth(f.Estimate)
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

// ReadyAtMost returns the number of upper bounds as the suffix of a note, or "" for 0.
func ReadyAtMost(atMost, asked int) string {
	if atMost == 0 {
		return ""
	}
	return fmt.Sprintf(", at most (≤) in %d of %d: ready when first asked", atMost, asked)
}

// HalfWidth returns the larger half of an interval in percent of the value. It returns "±?"
// if the value is 0 or has no interval.
func HalfWidth(e figure.Estimate) string {
	if !e.Bounded || e.Value == 0 {
		return "±?"
	}
	percent := 100 * half(e) / math.Abs(e.Value)
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

// Change returns a figure's shift from the baseline with its interval. The prefix "~" means
// no verdict, "=" the same within the margin, "≤" and "≥" a comparison with a bound.
func Change(f *figure.Figure) Cell {
	v := f.Versus
	switch {
	case v == nil || !f.Estimate.Known():
		return Words(None)
	case !v.Shift.Known() || !stat.Finite(v.Shift.Value):
		// The baseline may be 0, and then the relative shift is undefined.
		words := strings.TrimSpace(Mark(v))
		if v.Different() {
			words = "differs"
		}
		return Cell{Head: words, Figure: f}
	}
	c := Cell{Head: Mark(v) + signs[v.Bound] + signed(v.Shift.Value) + " %", Figure: f}
	c.by = &v.Shift.Value
	if v.Shift.Bounded {
		c.Tail = "[" + signed(v.Shift.Lo) + ", " + signed(v.Shift.Hi) + "]"
	}
	if v.Different() {
		c.Style = term.Green
		if v.Shift.Value > 0 == (f.Better != figure.More) {
			c.Style = term.Red
		}
	}
	return c
}

// Quotient returns the ratio of a figure to the baseline's, with its interval. It uses the
// marks of [Change].
func Quotient(f *figure.Figure) Cell {
	c := Change(f)
	if c.by == nil {
		return c
	}
	e := f.Versus.Ratio()
	c.Head = Mark(f.Versus) + signs[f.Versus.Bound] + Rounded(e, Significant)
	if e.Bounded {
		c.Tail = "[" + Bound(e, e.Lo, Significant) + ", " + Bound(e, e.Hi, Significant) + "]"
	}
	return c
}

// Mark returns the prefix of a figure without a proven difference.
func Mark(v *figure.Versus) string {
	switch {
	case v == nil || v.Verdict == stat.Different:
		return ""
	case v.Verdict == stat.Same:
		return "= "
	}
	return "~ "
}

// signed formats a share in percent, with its sign.
func signed(share float64) string {
	switch size := math.Abs(100 * share); {
	case !stat.Finite(share):
		return "?"
	case size >= 999.5:
		return fmt.Sprintf("%+.0f", 100*share)
	case size < 0.095:
		return fmt.Sprintf("%+.2f", 100*share)
	}
	return fmt.Sprintf("%+.1f", 100*share)
}

// WithinRound describes the shift between targets that share their rounds.
const WithinRound = "shift within a round (Hodges–Lehmann)"

// Compared explains the column of [Change]. The argument shift describes the estimate.
func Compared(baseline, shift string, how figure.Comparing, comparisons int) string {
	margin, by := cmp.Or(how.Margin, stat.DefaultMargin), cmp.Or(how.Adjust, stat.Holm)
	note := fmt.Sprintf("vs %s: %s with its 95 %% interval; = the same within ±%.3g %%, ~ not decided", Heading(baseline), shift, 100*margin)
	if comparisons > 1 && by != stat.Raw {
		note += fmt.Sprintf("; the verdicts, not the intervals, are adjusted for %d comparisons (%s)", comparisons, map[stat.Adjustment]string{stat.Holm: "Holm", stat.BH: "Benjamini–Hochberg"}[by])
	}
	return note
}

// Divided explains the column of [Quotient] in one line. [Compared] is the long form.
func Divided(baseline string, how figure.Comparing) string {
	margin := cmp.Or(how.Margin, stat.DefaultMargin)
	return fmt.Sprintf("÷ %s: ratio within a round (Hodges–Lehmann) with its 95 %% interval; = the same within %.3g %%, ~ no difference shown", Heading(baseline), 100*margin)
}

// mostDependent is the maximum number of rows that [Table.Dependent] names.
const mostDependent = 3

// Dependent returns a suffix for a note. It lists the intervals that were widened because
// rounds depend on earlier rounds, and is "" if there are none.
func (t *Table) Dependent() string {
	most, names := 1.05, []string(nil)
	seen := map[*figure.Figure]bool{}
	for _, row := range t.Rows {
		for i, c := range row {
			f := c.Figure
			if f == nil || seen[f] {
				continue
			}
			seen[f] = true
			by := f.Estimate.Widened
			if f.Versus != nil {
				by = max(by, f.Versus.Widened)
			}
			if by > 1.05 {
				most, names = max(most, by), append(names, cmp.Or(row[0].Label, row[0].Head)+" of "+t.Columns[i].Title)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	if more := len(names) - mostDependent; more > 0 {
		names = append(names[:mostDependent], fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("; intervals are up to %.1f times as wide as independent rounds would give, since rounds depend on earlier rounds: %s", most, strings.Join(names, ", "))
}

// Opposed returns a note if a shift and the two medians point in opposite directions, else "".
func Opposed(pairs []figure.Pair) string {
	for _, p := range pairs {
		if p.Base == nil || p.Figure == nil || p.Figure.Versus == nil || !p.Figure.Versus.Shift.Known() || !p.Base.Known() || !p.Figure.Known() {
			continue
		}
		if shift := p.Figure.Versus.Shift.Value; shift*(p.Figure.Value-p.Base.Value)*sign(p.Base.Value) < 0 {
			return fmt.Sprintf("a shift is the Hodges–Lehmann estimate of all rounds, not the ratio of the medians: for %s the two point in opposite directions (%s %%, medians %s and %s)",
				Heading(p.Figure.Labels.String()), signed(shift), Text(p.Base.Value, p.Base.Unit), Text(p.Figure.Value, p.Figure.Unit))
		}
	}
	return ""
}

func sign(v float64) float64 { return math.Copysign(1, v) }

// Value returns a figure without its interval, which would make a table of many columns too
// wide.
func Value(f *figure.Figure, show func(float64) string) Cell {
	if f == nil || !f.Estimate.Known() || !stat.Finite(f.Estimate.Value) {
		return Words(None)
	}
	return Cell{Head: signs[f.Bound()] + Rounded(f.Estimate, show), Figure: f}
}

// signs are the prefixes of bounds.
var signs = map[string]string{figure.AtMost: "≤ ", figure.AtLeast: "≥ "}

// Versus formats a comparison like the iSulad performance report: the ratio of two trimmed
// means. It adds the mark of the verdict.
func Versus(from, to *figure.Figure, v *figure.Versus) Cell {
	if !from.Estimate.Known() || !to.Estimate.Known() {
		return Words(None)
	}
	mark := "~ "
	if v != nil {
		mark = Mark(v)
	}
	percent := stat.Versus(from.Estimate.Value, to.Estimate.Value)
	return Cell{Head: mark + stat.FormatVersus(from.Estimate.Value, to.Estimate.Value), Figure: to, by: &percent}
}
