package overhead

import (
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
)

func numbers(all []int, between string) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(all), "[]"), " ", between)
}

// lines are notes below a table, or the parts of a rule.
type lines []string

// addIf adds texts on a condition.
func (l *lines) addIf(holds bool, texts ...string) {
	if holds {
		*l = append(*l, texts...)
	}
}

func ratio(v float64, format string) string {
	if !stat.Finite(v) {
		return page.None
	}
	return fmt.Sprintf(format, v)
}

// headings joins names, each as in a heading.
func headings[S ~string](names []S, between string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = page.Heading(string(name))
	}
	return strings.Join(parts, between)
}

// orDot returns a text, or a dot if there is none.
func orDot(there bool, text string) page.Cell {
	if !there {
		text = page.Dot
	}
	return page.Words(text)
}

// someMiB formats an amount in MiB, with a dot for zero.
func someMiB(bytes int64) page.Cell {
	return orDot(bytes != 0, page.MiB(bytes))
}

// difference formats the deviation of measured from truth. It adds the percentage only if
// truth is at least least: for tiny values a percentage means nothing.
func difference(measured, truth, least float64, show func(float64) string) page.Cell {
	c := page.Words(page.Signed(measured-truth, show))
	if truth >= least && stat.Finite(measured) {
		c.Tail = page.Percent(100 * (measured - truth) / truth)
	}
	return c
}

// within formats the ± part of a figure over several rounds.
func within(f *figure.Figure) string {
	if !f.Bounded {
		return ""
	}
	return page.HalfWidth(f.Estimate)
}
