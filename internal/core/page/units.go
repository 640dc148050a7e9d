package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// None stands where there is no figure, and Dot where there is nothing to say or
// exactly nothing of it.
const (
	None = "–"
	Dot  = "·"
)

// Duration writes nanoseconds with a unit and three significant digits.
func Duration(ns float64) string {
	switch {
	case !stat.Finite(ns):
		return "?"
	case ns == 0:
		return "0 s"
	}
	return fitted(ns, times)
}

// fitted writes an amount in the first unit in which it has no more than three digits
// before the point; from 999.5 on they would round up to the next.
func fitted(v float64, units []scale) string {
	i := 0
	for i < len(units)-1 && !(math.Abs(v/units[i].per) < 999.5) {
		i++
	}
	return Digits(v/units[i].per) + " " + units[i].name
}

// Digits writes three significant ones, and all of those before the point.
func Digits(v float64) string {
	switch size := math.Abs(v); {
	case size >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// Size is a number of bytes in the unit that reads best.
func Size(n float64) string { return fitted(n, sizes) }

// Tenths writes a figure with a tenth below 100 and without above it, so that
// figures of one table line up; nothing is minus zero.
func Tenths(v float64) string {
	decimals := 0
	switch {
	case !stat.Finite(v):
		return "?"
	case math.Abs(v) < 0.05:
		return "0.0"
	case math.Abs(v) < 99.95:
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// MiB is an amount of memory in MiB, without its unit.
func MiB[N int64 | float64](bytes N) string { return Tenths(float64(bytes) / (1 << 20)) }

// Milli is a rate of CPU time in milli-CPUs, without its unit.
func Milli(cpus float64) string { return Tenths(1000 * cpus) }

// Signed has a sign on both sides of zero, and none at it.
func Signed(v float64, show func(float64) string) string {
	text := show(v)
	if v > 0 && text != "0.0" && text[0] != '+' {
		return "+" + text
	}
	return text
}

// Percent is a change in percent, with its sign.
func Percent(v float64) string {
	switch {
	case !stat.Finite(v):
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

// Megabytes is a bandwidth in MB/s of 10^6 bytes, without its unit: with a tenth
// from 10 on, as the tools print it, so that figures of one column line up.
func Megabytes(bytes float64) string {
	if v := bytes / 1e6; stat.Finite(v) && v >= 9.995 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return Significant(bytes / 1e6)
}

// Significant writes three digits, or two of what is so little that three would
// be zeros: a rate that there is never looks like None.
func Significant(v float64) string {
	switch {
	case !stat.Finite(v):
		return "?"
	case v != 0 && math.Abs(v) < 0.0995:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return Digits(v)
}

// Hundred is a share in percent without the sign, which stands in the title.
func Hundred(share float64) string {
	switch v := 100 * share; {
	case !stat.Finite(v):
		return "?"
	case v > 0 && v < 0.005:
		return "<0.01"
	default:
		return Digits(v)
	}
}

// Share is a share of the wall time, in percent.
func Share(share float64) string {
	switch v := 100 * share; {
	case !stat.Finite(v):
		return None
	case v != 0 && math.Abs(v) < 9.95:
		return fmt.Sprintf("%.1f %%", v)
	default:
		return fmt.Sprintf("%.0f %%", v)
	}
}

// Amount is a whole number with its noun: "1 connection", "65535 rounds".
func Amount[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Sandboxes is an amount of sandboxes in words.
func Sandboxes(n int) string {
	if n == 1 {
		return "1 sandbox"
	}
	return fmt.Sprintf("%d sandboxes", n)
}

// Between is the tail of a cell with an interval; "" where there are too few rounds
// for one.
func Between(e figure.Estimate, show func(float64) string) string {
	if !e.Bounded {
		return ""
	}
	return at(e, e.Lo, show) + "…" + at(e, e.Hi, show)
}

// Short cuts a text to at most n characters.
func Short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Middle cuts a text to n characters in its middle: of a cgroup's path both
// ends tell.
func Middle(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	head := (n - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(n-1-head):])
}

// Cut shortens a text in its middle to that many columns, after cleaning it: of a
// name both ends tell.
func Cut(s string, columns int) string {
	s = term.Clean(s)
	if term.Width(s) <= columns {
		return s
	}
	runes := []rune(s)
	head, tail, width := 0, len(runes), 1 // 1: the …
	for front := true; head < tail; front = !front {
		next := runes[head]
		if !front {
			next = runes[tail-1]
		}
		if width += term.Width(string(next)); width > columns {
			break
		}
		if front {
			head++
		} else {
			tail--
		}
	}
	return strings.TrimRight(string(runes[:head]), " ") + "…" + strings.TrimLeft(string(runes[tail:]), " ")
}

// Known shows what could not be read as such.
func Known(s string) string {
	if s == "" {
		return "?"
	}
	return s
}

// Dotted joins what is not empty.
func Dotted(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " · ")
}

// LongestName is where a target's name is cut in headings: a name can be
// anything, and a table has to stay one.
const LongestName = 32

// Heading is a name as it stands above or before figures.
func Heading(name string) string { return Short(term.Clean(name), LongestName) }

// Count is a median of whole numbers, which can lie between two.
func Count(v float64) string {
	if !stat.Finite(v) {
		return None
	}
	if v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// Memory is an amount of memory.
func Memory(bytes float64) string {
	switch {
	case !stat.Finite(bytes):
		return None
	case bytes == 0:
		return "0"
	}
	return Size(bytes)
}

// Growth is a change of memory, with its sign.
func Growth(bytes float64) string {
	if stat.Finite(bytes) && bytes > 0 {
		return "+" + Size(bytes)
	}
	return Memory(bytes)
}
