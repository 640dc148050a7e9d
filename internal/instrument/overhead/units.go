package overhead

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
)

func numbers(all []int, between string) string {
	words := make([]string, len(all))
	for i, n := range all {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, between)
}

func ratio(v float64, format string) string {
	if !stat.Finite(v) {
		return page.None
	}
	return fmt.Sprintf(format, v)
}

// orDot is a text, or a dot where there is nothing to say.
func orDot(there bool, text string) page.Cell {
	if !there {
		text = page.Dot
	}
	return page.Words(text)
}

// someMiB is an amount in MiB, with a dot for exactly nothing.
func someMiB(bytes int64) page.Cell {
	return orDot(bytes != 0, page.MiB(bytes))
}

// difference is what is off, and by how much of the truth where that is at
// least so much: in percent of next to nothing everything is off.
func difference(measured, truth, least float64, show func(float64) string) page.Cell {
	c := page.Words(page.Signed(measured-truth, show))
	if truth >= least && stat.Finite(measured) {
		c.Tail = page.Percent(100 * (measured - truth) / truth)
	}
	return c
}

// within is the tail of a figure that several rounds agree on.
func within(f *figure.Figure) string {
	if !f.Bounded {
		return ""
	}
	return page.HalfWidth(f.Estimate)
}
