package report

import (
	"math"
	"strconv"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// megabytes is a bandwidth in MB/s of 10^6 bytes, without its unit: with a tenth
// from 10 on, as the tools print it, so that figures of one column line up.
func megabytes(bytes float64) string {
	if v := bytes / 1e6; finite(v) && v >= 9.995 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return significant(bytes / 1e6)
}

// significant writes three digits, or two of what is so little that three would
// be zeros: a rate that there is never looks like none.
func significant(v float64) string {
	switch {
	case !finite(v):
		return "?"
	case v != 0 && math.Abs(v) < 0.0995:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return digits(v)
}

// estimate is a median and the larger half of its interval.
func estimate(e judge.Estimate, show func(float64) string) cell {
	if !e.Known {
		return plain(dot)
	}
	return cell{head: show(e.Value), tail: halfOf(e)}
}

// halfOf is "" where there are too few rounds for an interval.
func halfOf(e judge.Estimate) string {
	if !e.Bounded {
		return ""
	}
	return halfWidth(judge.Interval{Median: e.Value, Lo: e.Lo, Hi: e.Hi, Known: true})
}

// times is a cell's figure as a multiple of the base's: "~" where it was not
// shown to differ, in parentheses where one of the two is none of the device's.
func times(t *judge.StorageTable, c *judge.StorageCell, e judge.Estimate, different bool) (text string, style term.Style) {
	text = significant(e.Value) + "×"
	if !different {
		text = "~ " + text
	}
	switch base := cellOf(t, t.Base); {
	case !ofDevice(c) || !ofDevice(base):
		return "(" + text + ")", term.Plain
	case different && e.Value < 1:
		style = term.Red
	case different:
		style = term.Green
	}
	return text, style
}
