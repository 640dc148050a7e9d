package stat

import (
	"cmp"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// FewestForOutliers is of how many values outliers are told at least: of fewer, what is
// usual is not known.
const FewestForOutliers = 10

// boundOfScore is where a modified z-score is an outlier's, of one sample alone.
const boundOfScore = 3.5

// Outlier is a value that lies apart from those of its kind.
type Outlier struct {
	At    int     // its place
	Score float64 // modified z-score
	Shift float64 // from the median of its kind, as a share of it: 0.3 is 30 % more; NaN where there is none
}

// Kinds say which of several values are alike.
type Kinds struct {
	Of      []int   // of each value its kind
	Members [][]int // of each kind the places of the values whose median is usual for it, which may be of others as well
}

// Outliers finds the values that lie further from the median of their kind than values
// scatter, by the modified z-score, which outliers themselves hardly move: the distance
// over 1.4826 times the median absolute deviation, 3.5 or more (Iglewicz and Hoaglin, How
// to Detect and Handle Outliers, ASQC 1993). The deviation is that of all values from the
// medians of their kinds, which lie closer to few values than the true ones (n/(n − 0.8)
// mends that from 10 on; Croux and Rousseeuw, COMPSTAT 1992, 411–428), or that of a kind
// alone, where it is larger.
//
// Of a thousand values some lie beyond 3.5 by chance, so that the bound grows with how
// many are looked at in all: it is where one of them would lie beyond with probability
// [Alpha] (Bonferroni), and by Student's t, since a deviation of n values is as uncertain
// as a standard deviation of n·0.37 (Rousseeuw and Croux, JASA 88 (1993) 1273–1283).
// Nothing is told that is not 5 % off the median.
//
// Of values above 0 it is their logarithms that are looked at. Where more than half lie
// on their medians, the mean absolute deviation takes the place of the median one (times
// 1.2533, as there).
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
		free -= min(len(own[k]), 1) // its median was taken
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

// deviation estimates the standard deviation by distances from the middle.
func deviation(off []float64) float64 {
	if d := middleOf(off); d > 0 {
		return 1.4826 * d
	}
	return 1.2533 * stats.Mean(off)
}

// Scatter is half of the range around the median in which 95 of 100 values would lie if
// they were normal, as a share of the median: 1.96 · 1.4826 · median absolute deviation.
// NaN where the median is 0 or there is none.
func Scatter(values []float64) float64 {
	middle, off := deviations(values)
	share := 1.96 * 1.4826 * middleOf(off) / math.Abs(middle)
	if !Finite(share) {
		return math.NaN()
	}
	return share
}
