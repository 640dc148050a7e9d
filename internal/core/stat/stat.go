// Package stat implements the estimators and tests for measured values.
//
// Start times of containers are skewed and drift with the machine, and samples are small. So
// the package does not assume a normal distribution. The centre is the median, with an interval
// of order statistics. Differences are tested by the ranks of differences within a round, see
// [CompareAll]. [Trimmed] and [Versus] are only for comparisons with published tables. They
// compute the figures of those reports: the mean without the largest and the smallest value,
// and the difference in percent.
//
// All functions are pure and do not change their arguments. A result has the unit of the
// input, unless it is a ratio or a percentage.
//
// NaN and infinity are not valid measurements. A function whose result has an N skips them, and
// N counts the remaining values. All other functions return NaN or false for the whole input.
package stat

import (
	"math"
	"slices"
)

// Alpha is the probability of finding a difference anywhere in a table of equal sides.
// Intervals have confidence 1 − Alpha.
const Alpha = 0.05

// StopConfidence is the confidence of the interval by which a run decides that it is precise
// enough. It exceeds 1 − [Alpha] because a run would otherwise stop when an interval is narrow
// by chance. In simulations with 1 − Alpha, only 91 to 93 % of the intervals contained the true
// value.
const StopConfidence = 0.99

// worthSaying is the smallest relative shift that [SteadinessOf] and [Bimodal] report. With
// enough rounds even a shift of a thousandth would be significant.
const worthSaying = 0.05

// findingAlpha is the level of [SteadinessOf] and [Bimodal] for all rows tested together.
// docs/statistics.md has the rates of false findings.
const findingAlpha = 0.01

// Finite reports whether v is neither NaN nor an infinity.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func allFinite(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !Finite(v) })
}

// measured returns a copy of the finite values in the same order. benchmath sorts its input,
// and its U test exhausts memory on a NaN.
func measured(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !Finite(v) })
}

// median returns the median of sorted values, or NaN without values. It halves the two middle
// values before adding them to avoid an overflow.
func median(sorted []float64) float64 {
	n := len(sorted)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return sorted[n/2]
	}
	return sorted[n/2-1]/2 + sorted[n/2]/2
}

func middleOf(values []float64) float64 { return median(slices.Sorted(slices.Values(values))) }

// deviations returns the median and the distances of the values from it.
func deviations(values []float64) (middle float64, off []float64) {
	middle, off = middleOf(values), make([]float64, len(values))
	for i, v := range values {
		off[i] = math.Abs(v - middle)
	}
	return middle, off
}
