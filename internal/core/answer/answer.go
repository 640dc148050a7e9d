// Package answer writes the results of a run as sentences: values with units, ratios to a
// baseline, differences that were not shown, and failures. Instruments choose the figures, and
// this package provides the same wording for all of them.
package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Named is a figure and its name in sentences.
type Named struct {
	Name   string
	Figure *figure.Figure
}

func (n Named) value() string {
	f := n.Figure
	return page.Rounded(f.Estimate, func(v float64) string { return page.Text(v, f.Unit) })
}

// Known returns the figures that have a value, best first.
func Known(all []Named) []Named {
	all = slices.DeleteFunc(slices.Clone(all), func(n Named) bool { return !n.Figure.Known() })
	slices.SortStableFunc(all, func(a, b Named) int {
		if a.Figure.Better == figure.More {
			a, b = b, a
		}
		return cmp.Compare(a.Figure.Value, b.Figure.Value)
	})
	return all
}

// Values lists figures with their comparison to the baseline:
// "crun 33.0 ms, runc 43 ms (baseline), podman 200 ms (4.6×)".
func Values(all []Named, baseline string) string {
	parts := make([]string, len(all))
	for i, n := range all {
		parts[i] = page.Heading(n.Name) + " " + n.value()
		switch {
		case n.Figure.Versus != nil:
			parts[i] += " (" + compared(n.Figure.Versus) + ")"
		case n.Name == baseline && len(all) > 1:
			parts[i] += " (baseline)"
		}
	}
	return strings.Join(parts, ", ")
}

// Plain lists figures without comparisons: "crun 33.0 ms, runc 43 ms".
func Plain(all []Named) string {
	parts := make([]string, len(all))
	for i, n := range all {
		parts[i] = page.Heading(n.Name) + " " + n.value()
	}
	return strings.Join(parts, ", ")
}

// compared formats a comparison in two or three words.
func compared(v *figure.Versus) string {
	switch {
	case v.Different() && v.Shift.Known():
		return Times(v.Ratio())
	case v.Different():
		return "differs"
	case v.Verdict == stat.Same:
		return fmt.Sprintf("the same within %.3g %%", 100*v.Margin)
	}
	return "no difference shown"
}

// Times formats a ratio with as many digits as its interval supports.
func Times(ratio figure.Estimate) string { return page.Rounded(ratio, page.Significant) + "×" }

// Pair compares two figures for which less is better. The second one is the baseline: "crun is
// 1.8× as fast [1.5, 2.3]". If the comparison has no verdict, the text says so.
func Pair(of, baseline Named, better string) string {
	v := of.Figure.Versus
	if v == nil || !v.Different() || !v.Shift.Known() || v.Shift.Value <= -1 {
		if v == nil {
			return "not compared"
		}
		return compared(v)
	}
	name, e := of.Name, v.Ratio()
	if e.Value < 1 {
		e.Value, e.Lo, e.Hi = 1/e.Value, 1/e.Hi, 1/e.Lo
	} else {
		name = baseline.Name
	}
	text := fmt.Sprintf("%s is %s as %s", page.Heading(name), Times(e), better)
	if e.Bounded && e.Lo > 0 && stat.Finite(e.Hi) {
		text += fmt.Sprintf(" [%s, %s]", page.Bound(e, e.Lo, page.Significant), page.Bound(e, e.Hi, page.Significant))
	}
	return text
}

// Undecided reports whether a comparison of the figures has no verdict.
func Undecided(all []Named) bool {
	return slices.ContainsFunc(all, func(n Named) bool {
		v := n.Figure.Versus
		return v != nil && !v.Different() && v.Verdict != stat.Same
	})
}

// Spoiled lists the findings that explain why no difference was shown, in parentheses: " (the
// machine was busy, too few rounds)". It returns "" if there are none.
func Spoiled(found []record.Finding) string {
	var why []string
	for i := range found {
		if short := spoilers[found[i].Code]; short != "" {
			why = page.Union(why, short)
		}
	}
	if why == nil {
		return ""
	}
	return " (" + strings.Join(why, ", ") + ")"
}

// spoilers maps codes of findings to short texts for sentences.
var spoilers = map[string]string{
	finding.Pressure: "the machine was busy", finding.Steal: "the hypervisor took CPU time away", finding.OwnLimit: "tare's own CPU was limited",
	finding.OwnThrottled: "tare's own CPU was limited", finding.FewRounds: "too few rounds", finding.Drift: "the rounds drifted",
}

// NotWeighed returns the sentence that only one target was measured, if a finding reports this.
// The sentence belongs before all others.
func NotWeighed(found []record.Finding) (out []string) {
	for i := range found {
		if rest, only := strings.CutPrefix(found[i].Message, "only "); only && found[i].Code == finding.NotWeighed && found[i].Target == "" {
			out = append(out, "Only "+page.Short(rest, longestReason)+".")
		}
	}
	return out
}

// Failed returns a sentence that all attempts of an operation failed, with the reason from its
// finding.
func Failed(found []record.Finding, target, op string, lanes int, of *figure.Figure) string {
	reason := ""
	for i := range found {
		if f := &found[i]; f.Code == finding.Failed && f.Target == target && f.Op == op && f.Lanes == lanes {
			_, first, _ := strings.Cut(f.Message, "the first: ")
			reason = ": " + page.Short(term.Clean(first), longestReason)
		}
	}
	return fmt.Sprintf("%s: %s failed, %d of %d%s", page.Heading(target), op, of.Failed, of.Total, reason)
}

// Join joins two parts of a sentence. Either part may be empty.
func Join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

const longestReason = 160
