package stat

import (
	"math"
	"slices"
)

// Trend compares the second half of a run with its first.
type Trend struct {
	N       int     // values that entered; the middle one of an odd number in neither half
	Ratio   float64 // second half's median / first's; NaN if the first's is not positive
	P       float64 // Mann–Whitney U of the halves, two-sided
	Drifted bool
}

// Drift tells whether the values, given in the order of their rounds, moved
// during the run: page caches that fill, image stores that grow, a processor
// that heats up. The halves must differ by the Mann–Whitney U test at 0.01, and
// their medians by at least 5 %.
//
// Halves, because a trend test for slopes (Mann–Kendall) would not see a step
// any better and a reader can check halves by eye. Fewer than 10 values are
// never called drifted: halves of 4 cannot reach p = 0.01. Halves of 5 reach it
// only when every value of one exceeds every value of the other, so of ten
// rounds only a plain drift is seen.
func Drift(values []float64) Trend {
	kept := measured(values)
	half := len(kept) / 2
	first := slices.Sorted(slices.Values(kept[:half]))
	second := slices.Sorted(slices.Values(kept[len(kept)-half:]))
	t := Trend{N: len(kept), Ratio: math.NaN()}
	t.P = mannWhitney(first, second)
	if from := median(first); from > 0 {
		t.Ratio = median(second) / from
	}
	t.Drifted = t.P < findingAlpha && apart(t.Ratio)
	return t
}

// apart tells whether a ratio is 5 % or more away from 1, either way; NaN is not.
func apart(ratio float64) bool {
	return ratio >= 1+worthSaying || ratio <= 1/(1+worthSaying)
}
