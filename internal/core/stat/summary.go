package stat

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Summary is the centre of a sample and how well it is known. Median, Lo and
// Hi have the unit of the values.
type Summary struct {
	N      int // values that entered
	Median float64

	// Lo and Hi bound the median of what was sampled from. When not Known they
	// are the smallest and the largest value: the widest interval the sample
	// has. All three are NaN when N is 0.
	Lo, Hi float64

	// Confidence is that of Lo and Hi, 0 to 1: at least the one asked for when
	// Known, else less.
	Confidence float64

	// Known is false when N is too small for an interval at the confidence
	// asked for; see [MinRounds].
	Known bool

	Warnings []string
}

// Summarize estimates the median of what the values were drawn from, with an
// interval of at least the given confidence (0 to 1, exclusive).
//
// The interval is made of order statistics and assumes nothing about the
// distribution but that the values are independent (David and Nagaraja, Order
// Statistics, 3rd ed. 2003, section 7.1). It is computed by
// golang.org/x/perf/benchmath, as benchstat does: where a narrower interval
// suffices it may take one order statistic more from above than from below.
// Above 30 values benchmath uses the normal approximation of the binomial, and
// its stated confidence is then about 0.002 off.
func Summarize(values []float64, confidence float64) Summary {
	kept, left := measured(values)
	slices.Sort(kept)
	s := Summary{N: len(kept), Median: median(kept)}
	if left > 0 {
		s.Warnings = append(s.Warnings, leftOut(left, len(values)))
	}
	if s.N == 0 {
		s.Lo, s.Hi = math.NaN(), math.NaN()
		s.Warnings = append(s.Warnings, "no values")
		return s
	}
	if !(confidence > 0 && confidence < 1) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("no interval has confidence %v: it must lie between 0 and 1", confidence))
		return s.unknown(kept)
	}
	thresholds := benchmath.DefaultThresholds
	b := benchmath.AssumeNothing.Summary(benchmath.NewSample(kept, &thresholds), confidence)
	for _, w := range b.Warnings {
		s.Warnings = append(s.Warnings, w.Error())
	}
	if !Finite(b.Lo) || !Finite(b.Hi) {
		return s.unknown(kept)
	}
	s.Lo, s.Hi, s.Confidence, s.Known = b.Lo, b.Hi, b.Confidence, true
	return s
}

// unknown gives s the range of its values for an interval. The range misses
// the median only when all n values fall on one side of it, so its confidence
// is 1 − 2·2⁻ⁿ. (benchmath answers ±∞ with confidence 1, or one bound and ∞.)
func (s Summary) unknown(sorted []float64) Summary {
	s.Lo, s.Hi = sorted[0], sorted[len(sorted)-1]
	s.Confidence = 1 - math.Exp2(1-float64(s.N))
	return s
}

// Precision is the larger half of the interval relative to the median: 0.05
// reads "within 5 %". It is infinite when the interval is not Known, so that
// "until precise enough" never stops on a sample that is too small.
func (s Summary) Precision() float64 {
	if !s.Known {
		return math.Inf(1)
	}
	half := max(s.Hi-s.Median, s.Median-s.Lo)
	switch {
	case half == 0:
		return 0
	case s.Median == 0:
		return math.Inf(1)
	}
	return half / math.Abs(s.Median)
}
