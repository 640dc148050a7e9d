package stat

import (
	"cmp"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// FewestForOutliers is the smallest number of values with which outliers can be found.
const FewestForOutliers = 10

const boundOfScore = 3.5 // modified z-score from which a value of a single sample is an outlier

// Outlier is a value far from the other values of its kind.
type Outlier struct {
	At    int     // index
	Score float64 // modified z-score
	Shift float64 // relative to the median of its kind: 0.3 is 30 % more; NaN if values are not positive
}

// Kinds assigns values to kinds.
type Kinds struct {
	Of      []int   // the kind of each value
	Members [][]int // by kind, the indexes of the values for its median; they may include other kinds
}

// Outliers finds the values that are far from the median of their kind. It uses the modified
// z-score, the distance divided by 1.4826 times the median absolute deviation. An outlier has
// a score of at least 3.5 (Iglewicz and Hoaglin, How to Detect and Handle Outliers, ASQC 1993).
// This score is robust to the outliers themselves. The deviation is that of all values from
// the medians of their kinds, or that of the kind if it is larger. If a kind has few values,
// they are too close to their own median. The factor n/(n − 0.8) corrects this from 10 values
// on (Croux and Rousseeuw, COMPSTAT 1992, 411–428).
//
// Among a thousand values some exceed 3.5 by chance. So the bound grows with the total number
// of values: the probability that any value exceeds it by chance is [Alpha] (Bonferroni). It
// uses Student's t, because a deviation of n values is as uncertain as a standard deviation of
// n·0.37 values (Rousseeuw and Croux, JASA 88 (1993) 1273–1283). Values within 5 % of the median
// are not outliers.
//
// Positive values are compared as logarithms. If more than half of the values equal their
// medians, 1.2533 times the mean absolute deviation replaces the median absolute deviation
// (Iglewicz and Hoaglin).
func Outliers(values []float64, kinds Kinds, among int) (out []Outlier) {
	if len(values) < FewestForOutliers || !allFinite(values) {
		return nil
	}
	scaled, logarithms := slices.Clone(values), slices.Min(values) > 0
	if logarithms {
		for i, v := range values {
			scaled[i] = math.Log(v)
		}
	}
	middles, own := make([]float64, len(kinds.Members)), make([][]float64, len(kinds.Members))
	for k, members := range kinds.Members {
		of := make([]float64, len(members))
		for i, at := range members {
			of[i] = scaled[at]
		}
		middles[k] = middleOf(of)
	}
	off := make([]float64, len(scaled))
	for i, v := range scaled {
		k := kinds.Of[i]
		n := float64(len(kinds.Members[k]))
		off[i] = math.Abs(v-middles[k]) * n / (n - 0.8)
		own[k] = append(own[k], off[i])
	}
	all, widest, free := deviation(off), make([]float64, len(own)), len(values)
	for k := range own {
		if widest[k] = all; len(own[k]) >= FewestForOutliers {
			widest[k] = max(all, deviation(own[k]))
		}
		free -= min(len(own[k]), 1) // one degree of freedom for its median
	}
	freedom := stats.TDist{V: 0.37 * float64(max(free, FewestForOutliers/2))}
	bound := max(boundOfScore, -stats.InvCDF(freedom)(Alpha/2/float64(max(among, len(values)))))
	for i, v := range scaled {
		k := kinds.Of[i]
		o := Outlier{At: i, Score: (v - middles[k]) / widest[k], Shift: math.NaN()}
		far := math.Abs(v-middles[k]) >= worthSaying*math.Abs(middles[k])
		if logarithms {
			o.Shift = math.Expm1(v - middles[k])
			far = apart(1 + o.Shift)
		}
		if far && math.Abs(o.Score) > bound && Finite(o.Score) {
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(a, b Outlier) int { return cmp.Compare(math.Abs(b.Score), math.Abs(a.Score)) })
	return out
}

// deviation estimates the standard deviation from distances to the median.
func deviation(off []float64) float64 {
	if d := middleOf(off); d > 0 {
		return 1.4826 * d
	}
	return 1.2533 * stats.Mean(off)
}

// Scatter returns half of the range around the median that contains 95 % of normal values,
// relative to the median: 1.96 · 1.4826 · median absolute deviation. It is NaN without values
// and for a median of 0.
func Scatter(values []float64) float64 {
	middle, off := deviations(values)
	share := 1.96 * 1.4826 * middleOf(off) / math.Abs(middle)
	if !Finite(share) {
		return math.NaN()
	}
	return share
}
