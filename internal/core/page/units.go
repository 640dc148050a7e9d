package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// None replaces a missing figure. Dot replaces an exact zero or an empty text.
const (
	None = "–"
	Dot  = "·"
)

// Duration formats nanoseconds with a unit and three significant digits.
func Duration(ns float64) string {
	switch {
	case !stat.Finite(ns):
		return "?"
	case ns == 0:
		return "0 s"
	}
	return fitted(ns, times)
}

// fitted formats an amount in the first unit with at most three digits before the point.
// Amounts from 999.5 on would round to four digits, so they take the next unit.
func fitted(v float64, units []scale) string {
	i := 0
	for i < len(units)-1 && !(math.Abs(v/units[i].per) < 999.5) {
		i++
	}
	return Digits(v/units[i].per) + " " + units[i].name
}

// Digits formats three significant digits, or all digits before the point if there are more.
func Digits(v float64) string {
	switch size := math.Abs(v); {
	case size >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// Size formats a number of bytes in the largest unit that fits.
func Size(n float64) string { return fitted(n, sizes) }

// Tenths formats a value with one decimal below 100 and none above, so that the figures of a
// table are aligned. It never returns minus zero.
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

// MiB formats an amount of memory in MiB, without the unit.
func MiB[N int64 | float64](bytes N) string { return Tenths(float64(bytes) / (1 << 20)) }

// Milli formats a rate of CPU time in milli-CPUs, without the unit.
func Milli(cpus float64) string { return Tenths(1000 * cpus) }

// Signed adds a plus sign to a positive value.
func Signed(v float64, show func(float64) string) string {
	text := show(v)
	if v > 0 && text != "0.0" && text[0] != '+' {
		return "+" + text
	}
	return text
}

// Percent formats a change in percent, with its sign.
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

// Megabytes formats a bandwidth in MB/s of 10^6 bytes, without the unit. From 10 on it has one
// decimal, as in the tools' own output, so that the figures of a column are aligned.
func Megabytes(bytes float64) string {
	if v := bytes / 1e6; stat.Finite(v) && v >= 9.995 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return Significant(bytes / 1e6)
}

// Significant formats three significant digits, or two if three would only show zeros. A
// tiny rate never looks like None.
func Significant(v float64) string {
	switch {
	case !stat.Finite(v):
		return "?"
	case v != 0 && math.Abs(v) < 0.0995:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return Digits(v)
}

// Hundred formats a share in percent. The percent sign is in the title.
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

// Share formats a share of the wall time in percent.
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

// Amount formats a whole number with its noun: "1 connection", "65535 rounds".
func Amount[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Sandboxes formats a number of sandboxes with the noun.
func Sandboxes(n int) string {
	if n == 1 {
		return "1 sandbox"
	}
	return fmt.Sprintf("%d sandboxes", n)
}

// Between returns the interval for the tail of a cell, or "" with too few rounds for one.
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

// Middle shortens a text to n characters in its middle. Both ends of a cgroup path identify
// it.
func Middle(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	head := (n - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(n-1-head):])
}

// Cut cleans a text and shortens it in its middle to that many columns. Both ends of a name
// identify it.
func Cut(s string, columns int) string {
	s = term.Clean(s)
	if term.Width(s) <= columns {
		return s
	}
	runes := []rune(s)
	head, tail, width := 0, len(runes), 1 // 1 is the width of the …
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

// Known returns "?" for an empty text, which could not be read.
func Known(s string) string { return cmp.Or(s, "?") }

// Dotted joins the parts that are not empty.
func Dotted(parts ...string) string {
	return strings.Join(Filled(parts...), " · ")
}

// Filled returns the texts that are not empty.
func Filled(texts ...string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" })
}

// LongestName is the maximum length of a target's name in headings. Names are arbitrary, and
// tables must stay narrow.
const LongestName = 32

// Heading cleans and shortens a name for a heading.
func Heading(name string) string { return Short(term.Clean(name), LongestName) }

// Count formats a median of whole numbers, which may be a half.
func Count(v float64) string {
	if !stat.Finite(v) {
		return None
	}
	if v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// Memory formats an amount of memory.
func Memory(bytes float64) string {
	switch {
	case !stat.Finite(bytes):
		return None
	case bytes == 0:
		return "0"
	}
	return Size(bytes)
}

// Growth formats a change of memory, with its sign.
func Growth(bytes float64) string {
	if stat.Finite(bytes) && bytes > 0 {
		return "+" + Size(bytes)
	}
	return Memory(bytes)
}
