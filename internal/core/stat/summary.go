package stat

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"
)

// Summary is the median of a sample with its interval, in the unit of the values.
type Summary struct {
	N      int     // number of values used
	Median float64 // NaN if N is 0

	// Lo and Hi bound the true median with at least the requested confidence. Known is false
	// if N is too small, see [MinRounds].
	Lo, Hi float64
	Known  bool

	// Widened is the factor on the interval for rounds that depend on earlier ones, or 1 for
	// independent rounds. It is 0 if the order of values is unknown.
	Widened float64
}

// Summarize estimates the median of the distribution of the values, with an interval of at
// least the given confidence (0 to 1, exclusive). It skips values that are not finite.
//
// The interval consists of order statistics and only assumes independent values (David and
// Nagaraja, Order Statistics, 3rd ed. 2003, section 7.1). golang.org/x/perf/benchmath computes
// it, as for benchstat; a narrower interval may be asymmetric by one order statistic. Above 30
// values benchmath uses the normal approximation of the binomial distribution. The confidence
// is then off by about 0.002.
func Summarize(values []float64, confidence float64) Summary {
	kept := measured(values)
	slices.Sort(kept)
	s := Summary{N: len(kept), Median: median(kept)}
	if s.N == 0 || !(confidence > 0 && confidence < 1) {
		return s
	}
	thresholds := benchmath.DefaultThresholds
	b := benchmath.AssumeNothing.Summary(benchmath.NewSample(kept, &thresholds), confidence)
	if Finite(b.Lo) && Finite(b.Hi) { // infinite bounds mean too few values
		s.Lo, s.Hi, s.Known = b.Lo, b.Hi, true
	}
	return s
}

// loneAlpha is the level of the test for dependent rounds of one sample. It is lax because
// missing a dependence is worse than finding a false one.
const loneAlpha = 0.15

// SummarizeRounds is [Summarize] for values in the order of their rounds. If rounds are
// dependent, it widens the interval like that of a shift, see [CompareAll]. Intervals of
// positive values are widened on a logarithmic scale, so they stay positive.
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
	s.Lo, s.Hi = min(s.Lo, s.Median), max(s.Hi, s.Median) // guards against rounding of logarithms
	s.Known = Finite(s.Lo) && Finite(s.Hi)
	return s
}

// Precision returns the larger half of the interval relative to the median: 0.05 is ±5 %. It
// is infinite if the interval is not Known, so a run never stops on too small a sample.
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
