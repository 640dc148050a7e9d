package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// tookCell is the median of a time, with the larger half of its interval.
func tookCell(e judge.Estimate) cell {
	if !e.Known {
		return plain(none)
	}
	return cell{head: duration(e.Value), tail: halfOf(e)}
}

// boundedCell is the median of a time, with its interval in the same unit.
func boundedCell(e judge.Estimate) cell {
	if !e.Known {
		return plain(none)
	}
	return cell{head: duration(e.Value), tail: bracketed(e)}
}

// bracketed is an interval in the unit of its median: "[238, 251]". "" where there
// are too few starts for one.
func bracketed(e judge.Estimate) string {
	if !e.Bounded || !finite(e.Lo) || !finite(e.Hi) || !finite(e.Value) {
		return ""
	}
	unit := 1e9
	for _, u := range []float64{1, 1e3, 1e6} {
		if math.Abs(e.Value)/u < 999.5 {
			unit = u
			break
		}
	}
	return "[" + digits(e.Lo/unit) + ", " + digits(e.Hi/unit) + "]"
}

// shareText is a share of the wall time, in percent.
func shareText(share float64) string {
	switch v := 100 * share; {
	case !finite(v):
		return none
	case v != 0 && math.Abs(v) < 9.95:
		return fmt.Sprintf("%.1f %%", v)
	default:
		return fmt.Sprintf("%.0f %%", v)
	}
}

// seconds is a time with all its digits: what notes say is looked for again as it
// stands there.
func seconds(ns int64) string { return strconv.FormatFloat(float64(ns)/1e9, 'f', -1, 64) + " s" }

// sign is a text with a plus where the number has no sign of its own.
func sign(v int64, text string) string {
	if v > 0 {
		return "+" + text
	}
	return text
}

// since is the time from one moment to another. What no clock can show, but a record
// that was made up can hold, becomes the longest there is.
func since(began, at int64) int64 {
	d := at - began
	switch {
	case at >= began && d < 0:
		return math.MaxInt64
	case at < began && d > 0:
		return math.MinInt64
	}
	return d
}

// cut shortens a text in its middle to that many columns, after cleaning it: of a
// name both ends tell.
func cut(s string, columns int) string {
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
