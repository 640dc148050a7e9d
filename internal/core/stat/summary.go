package stat

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Summary is the centre of a sample and how well it is known. Median, Lo and
// Hi have the unit of the values.
type Summary struct {
	N      int     // values that entered
	Median float64 // NaN where N is 0

	// Lo and Hi bound the median of what was sampled from, at the confidence asked for or
	// more. Known is false when N is too small for that, see [MinRounds].
	Lo, Hi float64
	Known  bool
}

// Summarize estimates the median of what the values were drawn from, with an
// interval of at least the given confidence (0 to 1, exclusive). What is no finite
// number is left out.
//
// The interval is made of order statistics and assumes nothing about the
// distribution but that the values are independent (David and Nagaraja, Order
// Statistics, 3rd ed. 2003, section 7.1). It is computed by
// golang.org/x/perf/benchmath, as benchstat does: where a narrower interval
// suffices it may take one order statistic more from above than from below.
// Above 30 values benchmath uses the normal approximation of the binomial, and
// its stated confidence is then about 0.002 off.
func Summarize(values []float64, confidence float64) Summary {
	kept := measured(values)
	slices.Sort(kept)
	s := Summary{N: len(kept), Median: median(kept)}
	if s.N == 0 || !(confidence > 0 && confidence < 1) {
		return s
	}
	thresholds := benchmath.DefaultThresholds
	b := benchmath.AssumeNothing.Summary(benchmath.NewSample(kept, &thresholds), confidence)
	if Finite(b.Lo) && Finite(b.Hi) { // ±∞, or one bound and ∞, is its word for too few values
		s.Lo, s.Hi, s.Known = b.Lo, b.Hi, true
	}
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
