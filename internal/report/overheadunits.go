package report

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tare-bench/tare/internal/judge"
)

// tenths writes a figure with a tenth below 100 and without above it, so that
// figures of one table line up; nothing is minus zero.
func tenths(v float64) string {
	decimals := 0
	switch {
	case !finite(v):
		return "?"
	case math.Abs(v) < 0.05:
		return "0.0"
	case math.Abs(v) < 99.95:
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

func mib[N int64 | float64](bytes N) string { return tenths(float64(bytes) / (1 << 20)) }

func milli(cpus float64) string { return tenths(1000 * cpus) }

// someMiB is mib, with a dot for exactly nothing.
func someMiB(bytes int64) cell {
	if bytes == 0 {
		return plain(dot)
	}
	return plain(mib(bytes))
}

// signed has a sign on both sides of zero, and none at it.
func signed(v float64, show func(float64) string) string {
	text := show(v)
	if v > 0 && text != "0.0" && text[0] != '+' {
		return "+" + text
	}
	return text
}

// difference is what is off, and by how much of the truth where that is at
// least so much: in percent of next to nothing everything is off.
func difference(found, truth, least float64, show func(float64) string) cell {
	c := plain(signed(found-truth, show))
	if truth >= least && finite(found) {
		c.tail = percent(100 * (found - truth) / truth)
	}
	return c
}

func percent(v float64) string {
	switch {
	case !finite(v):
		return "?"
	case math.Abs(v) < 0.005:
		return "0.0 %"
	case math.Abs(v) < 0.995:
		return fmt.Sprintf("%+.2f %%", v)
	case math.Abs(v) >= 99.95:
		return fmt.Sprintf("%+.0f %%", v)
	}
	return fmt.Sprintf("%+.1f %%", v)
}

// within is the tail of a figure that several rounds agree on.
func within(i judge.Interval) string {
	if !i.Known {
		return ""
	}
	return halfWidth(i)
}

// between is the tail of a figure with an interval.
func between(lo, hi float64, known bool, show func(float64) string) string {
	if !known {
		return ""
	}
	return show(lo) + "…" + show(hi)
}

// middle cuts a text to n characters in its middle: of a cgroup's path both
// ends tell.
func middle(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	head := (n - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(n-1-head):])
}
