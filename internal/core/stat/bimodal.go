package stat

import (
	"math"
	"slices"
)

// Modes is the result of [Bimodal]. Low and High are in the unit of the values.
type Modes struct {
	N       int // values used
	Bimodal bool

	// Low and High are the medians of the two groups. LowN is the number of values in the
	// lower group. Zero unless Bimodal.
	Low, High float64
	LowN      int
}

// minModes is the smallest sample for [Bimodal]: smaller unimodal samples often look
// bimodal.
const minModes = 10

// Bimodal reports whether the values form two groups, for example because half of the
// starts hit a cache. The median is then an untypical time. It uses Hartigan's dip test at
// 0.01 divided by the number of rows read together, and requires that the groups differ by
// at least 5 % of the larger. It first spreads rounded values over their step: ticks are
// not groups.
//
// The null hypothesis of the dip test is any unimodal distribution, so the long right tail
// of start times does not trigger it. The bimodality coefficient and the largest gap mistake
// skewness and a few outliers for a second mode. A group of less than about a quarter of the
// values is not found; it shows in p90, p99 and max.
func Bimodal(values []float64, tests int) Modes {
	kept := measured(values)
	slices.Sort(kept)
	m := Modes{N: len(kept)}
	if m.N < minModes || dip(spread(kept)) <= criticalDip(m.N, tests) {
		return m
	}
	cut := split(kept)
	low, high := median(kept[:cut]), median(kept[cut:])
	m.Bimodal = high-low >= worthSaying*max(math.Abs(low), math.Abs(high))
	if m.Bimodal {
		m.Low, m.High, m.LowN = low, high, cut
	}
	return m
}

// spread distributes equal values of a sorted sample over their rounding step, the smallest
// distance between two values.
func spread(sorted []float64) []float64 {
	tick := step(sorted)
	out := make([]float64, 0, len(sorted))
	for len(out) < len(sorted) {
		first := len(out)
		same := first
		for same < len(sorted) && sorted[same] == sorted[first] {
			same++
		}
		for i := first; i < same; i++ {
			share := (float64(i-first)+0.5)/float64(same-first) - 0.5
			out = append(out, sorted[i]+tick*share)
		}
	}
	return out
}

// uniformDip is the 0.99 quantile of the dip of n uniform values, the unimodal distribution
// with the largest dip. It was simulated with [dip] on 400 000 samples (60 000 from n = 2000
// on), and is within 0.0003 of the table in M. Maechler's R package diptest, which used a
// million.
var uniformDip = []struct {
	n   int
	dip float64
}{
	{10, 0.1595}, {15, 0.1360}, {20, 0.1206}, {30, 0.1017}, {50, 0.0811},
	{100, 0.0591}, {200, 0.0427}, {500, 0.0275}, {2000, 0.0140}, {10000, 0.0063},
}

// perDecade is the largest rise of the quantile of √n·dip when the tail probability shrinks
// to a tenth. Simulations of 10 to 200 values gave 0.05 to 0.095, down to a tail of 0.00003.
const perDecade = 0.095

// criticalDip interpolates √n·dip, which tends to a constant, as diptest does.
// n is at least that of the first row.
func criticalDip(n, tests int) float64 {
	root := func(row int) float64 { return math.Sqrt(float64(uniformDip[row].n)) * uniformDip[row].dip }
	last := len(uniformDip) - 1
	scaled := root(last)
	for row := range last {
		if a, b := uniformDip[row].n, uniformDip[row+1].n; n <= b {
			share := float64(n-a) / float64(b-a)
			scaled = root(row) + share*(root(row+1)-root(row))
			break
		}
	}
	return (scaled + perDecade*math.Log10(float64(max(tests, 1)))) / math.Sqrt(float64(n))
}

// split returns the index that divides sorted values into the two groups with the smallest
// sum of squares inside the groups (W. D. Fisher, On Grouping for Maximum Homogeneity, JASA
// 53 (1958) 789–798). This is the largest sum of squares between the groups.
func split(sorted []float64) int {
	n := float64(len(sorted))
	mean := 0.0
	for _, v := range sorted {
		mean += v / n
	}
	cut, most, sum := 1, -1.0, 0.0
	for i, v := range sorted[:len(sorted)-1] {
		sum += v - mean
		lower := float64(i + 1)
		if between := sum * sum / (lower * (n - lower)); between > most {
			cut, most = i+1, between
		}
	}
	return cut
}
