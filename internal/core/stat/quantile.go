package stat

import (
	"math"
	"slices"
)

// Quantile returns the smallest value that at least the share q (0 to 1) of the sorted values do
// not exceed. This is the nearest rank, definition 1 of Hyndman and Fan, Sample Quantiles in
// Statistical Packages, The American Statistician 50 (1996) 361–365. It does not interpolate, so
// a p99 is a measured value. The exception is q = 0.5: it returns the median of [Summary], which
// averages the two middle values of an even number.
//
// The values must be finite and ascending. It is NaN without values and for a NaN q.
func Quantile(sorted []float64, q float64) float64 {
	n := len(sorted)
	if n == 0 || math.IsNaN(q) {
		return math.NaN()
	}
	if q == 0.5 {
		return median(sorted)
	}
	q = min(max(q, 0), 1)
	// Round down first, because floating-point products are inexact: 0.07 × 100 is
	// 7.000000000000001.
	rank := int(math.Ceil(q*float64(n) - 1e-9))
	return sorted[min(max(rank, 1), n)-1]
}

// Quantiles returns [Quantile] of unsorted values for each of qs. If a value is not finite, all
// are NaN.
func Quantiles(values []float64, qs ...float64) []float64 {
	var sorted []float64
	if allFinite(values) {
		sorted = slices.Sorted(slices.Values(values))
	}
	out := make([]float64, len(qs))
	for i, q := range qs {
		out[i] = Quantile(sorted, q)
	}
	return out
}
