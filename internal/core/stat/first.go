package stat

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// Start compares the first round of a run with all later ones.
type Start struct {
	N       int     // values that entered
	Ratio   float64 // the first / the median of the others; NaN where a value is not positive
	Unlike  float64 // how many robust standard deviations it is off, of their logarithms
	Differs bool
}

// First tells whether the first of the values, in the order of their rounds, is
// unlike the others, as when the warm-up was too short: its caches were cold. It has
// to lie beyond all others but two, to be 5 % off their median, and further than their
// median absolute deviation allows at 0.01, which a second or third slow round hardly
// moves. Of
// two heaps the first is in one, and below 10 values nothing is said. An outlier that
// happens to come first cannot be told from a cold start: docs/statistics.md has how
// often that is.
func First(values []float64) Start {
	kept := measured(values)
	s := Start{N: len(kept), Ratio: math.NaN()}
	if s.N < minModes || slices.Min(kept) <= 0 || Bimodal(kept).Bimodal {
		return s
	}
	logs := make([]float64, s.N)
	for i, v := range kept {
		logs[i] = math.Log(v)
	}
	first, others := logs[0], slices.Sorted(slices.Values(logs[1:]))
	middle, off := deviations(others)
	// 1.4826 makes of a normal sample's deviation its standard deviation. What was
	// rounded scatters at least by its steps.
	scatter := max(1.4826*middleOf(off), step(others))
	s.Ratio, s.Unlike = math.Exp(first-middle), math.Abs(first-middle)/scatter
	// A deviation of n values is as uncertain as a standard deviation of n·0.37 (its
	// efficiency: Rousseeuw and Croux, JASA 88 (1993) 1273–1283).
	bound := stats.InvCDF(stats.TDist{V: 0.37 * float64(s.N)})(1 - findingAlpha/2)
	// The second and third may be as slow; a fourth is no warm-up.
	further := 0
	for _, v := range others {
		if (v-middle)*(first-middle) > 0 && math.Abs(v-middle) >= math.Abs(first-middle) {
			further++
		}
	}
	s.Differs = further <= 2 && s.Unlike > bound && apart(s.Ratio)
	return s
}

// step is the smallest distance between two different values of a sorted sample; 0
// where all are equal.
func step(sorted []float64) float64 {
	least := 0.0
	for i := 1; i < len(sorted); i++ {
		if d := sorted[i] - sorted[i-1]; d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}
