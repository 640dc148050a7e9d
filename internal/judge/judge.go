// Package judge turns the records of those instruments into what can be said of
// them that have not yet a room of their own.
package judge

import (
	"maps"
	"slices"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// Confidence of every interval.
const Confidence = 0.95

// Interval is a median and its interval.
type Interval struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	Lo     float64 `json:"lo"` // of the interval, when Known
	Hi     float64 `json:"hi"`
	Known  bool    `json:"known"` // false: too few values for an interval at 95 %
}

func interval(values stat.Rounds) Interval {
	s := stat.Summarize(ordered(values), Confidence)
	i := Interval{N: s.N, Known: s.Known}
	if s.N > 0 {
		i.Median = s.Median
	}
	if s.Known {
		i.Lo, i.Hi = s.Lo, s.Hi
	}
	return i
}

// ordered lists the values by round.
func ordered(values stat.Rounds) []float64 {
	out := make([]float64, 0, len(values))
	for _, r := range slices.Sorted(maps.Keys(values)) {
		out = append(out, values[r])
	}
	return out
}

func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return stat.Quantiles(values, 0.5)[0]
}

// median is 0 where there is nothing.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return stat.Summarize(values, Confidence).Median
}

// adder takes findings.
type adder = func(record.Finding)

const (
	foundIncomplete = "incomplete"
	foundThrottled  = "throttled"
)

func interrupted(f *record.Failure) bool { return f != nil && f.Kind == record.FailInterrupted }

// bytesText prints bytes with a unit of 1024s.
func bytesText(b float64) string { return finding.Bytes(b) }
