package report

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// none stands where there is no figure.
const none = "–"

// duration writes nanoseconds with a unit and three significant digits.
func duration(ns float64) string {
	switch {
	case !finite(ns):
		return "?"
	case ns == 0:
		return "0 s"
	case ns < 0:
		return "-" + duration(-ns)
	}
	for _, unit := range []struct {
		name string
		ns   float64
	}{{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}} {
		if v := ns / unit.ns; v < 999.5 { // above, three digits round up to the next unit
			return digits(v) + " " + unit.name
		}
	}
	return digits(ns/1e9) + " s"
}

// digits writes three significant ones, and all of those before the point.
func digits(v float64) string {
	switch {
	case v >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func size(n float64) string {
	for _, unit := range []struct {
		name  string
		bytes float64
	}{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}} {
		if v := n / unit.bytes; v < 999.5 {
			return digits(v) + " " + unit.name
		}
	}
	return digits(n/(1<<30)) + " GiB"
}

// halfWidth is the larger half of an interval in percent of the median.
func halfWidth(s judge.Interval) string {
	if !s.Known || s.Median <= 0 {
		return "±?"
	}
	percent := 100 * max(s.Hi-s.Median, s.Median-s.Lo) / s.Median
	switch {
	case !finite(percent):
		return "±?"
	case percent > 0 && percent < 0.05:
		return "±0.0 %"
	case percent > 0 && percent < 0.95:
		return fmt.Sprintf("±%.1f %%", percent)
	}
	return fmt.Sprintf("±%.0f %%", percent)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// short cuts a text to at most n characters.
func short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// longestName is where a target's name is cut in headings: a name can be
// anything, and a table has to stay one.
const longestName = 32

func heading(name string) string { return short(term.Clean(name), longestName) }
