package stat

import (
	"math"
	"slices"
)

// Samples are the independent values of two sides in one stratum, such as a round.
type Samples struct{ Old, New []float64 }

// Ratio is the ratio of new to old values.
type Ratio struct {
	N      int // number of values of the smaller side, over strata with both sides
	Value  float64
	Lo, Hi float64
	Known  bool // false: too few values for an interval
}

// RatioWithin returns the median of all ratios of a new value to an old one in the same stratum.
// Strata may differ in level, and in the number of values per side. The interval inverts the sum
// of the strata's Mann–Whitney statistics, as [CompareAll] does for one stratum. Strata with only
// one side are skipped. The ratio is unknown if a value is not positive.
//
// Reference: Lehmann, Nonparametrics, 1975, chapter 3 (blocked comparisons).
func RatioWithin(strata []Samples, confidence float64) (r Ratio) {
	var all []float64 // logarithms
	variance, before, after := 0.0, 0, 0
	for _, s := range strata {
		n, m := len(s.Old), len(s.New)
		if n == 0 || m == 0 {
			continue
		}
		before, after = before+n, after+m
		variance += float64(n) * float64(m) * float64(n+m+1) / 12
		for _, a := range s.Old {
			for _, b := range s.New {
				if !(a > 0 && b > 0) || !Finite(a) || !Finite(b) {
					return Ratio{}
				}
				all = append(all, math.Log(b)-math.Log(a))
			}
		}
	}
	if len(all) == 0 {
		return Ratio{}
	}
	slices.Sort(all)
	r.N, r.Value = min(before, after), math.Exp(median(all))
	if rank := rankWithin(float64(len(all)), variance, 1-confidence); rank > 0 {
		r.Lo, r.Hi, r.Known = math.Exp(all[rank-1]), math.Exp(all[len(all)-rank]), true
	}
	return r
}
