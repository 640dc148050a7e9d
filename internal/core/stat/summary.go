package stat

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
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

	// Widened is how many times as wide the interval was made for rounds that depend on
	// those before them; 1 where they do not. 0 where their order is not known.
	Widened float64
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

// loneAlpha is the level at which the rounds of one sample are taken to depend on each
// other. It is lax: to miss dependence is worse than to see some that is not there.
const loneAlpha = 0.15

// SummarizeRounds is [Summarize] of values in the order of their rounds. Where these
// depend on those before them, the interval is widened as that of a shift, see
// [CompareAll]; of positive values on the scale of logarithms, so that it stays above 0.
func SummarizeRounds(values []float64, confidence float64) Summary {
	s, kept := Summarize(values, confidence), measured(values)
	d, _ := serial(kept, 1)
	s.Widened = 1
	if !s.Known || d.z <= stats.StdNormal.InvCDF(1-loneAlpha) {
		return s
	}
	s.Widened, _, _ = widening(len(kept), min(d.rho, mostDependent), 1-confidence)
	scale, back := func(v float64) float64 { return v }, func(v float64) float64 { return v }
	if slices.Min(kept) > 0 {
		scale, back = math.Log, math.Exp
	}
	middle := scale(s.Median)
	s.Lo, s.Hi = back(middle-s.Widened*(middle-scale(s.Lo))), back(middle+s.Widened*(scale(s.Hi)-middle))
	s.Lo, s.Hi = min(s.Lo, s.Median), max(s.Hi, s.Median) // what a logarithm rounds
	s.Known = Finite(s.Lo) && Finite(s.Hi)
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
