package stat

import (
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// ChangeAlpha is the probability that a history without changes shows one.
const ChangeAlpha = 0.01

// shortest is the smallest number of values at one level, because fewer may be outliers. Series
// shorter than ShortestSeries are not searched.
const (
	shortest       = 3
	ShortestSeries = 2 * shortest
)

// Course describes the level changes in a series and the smallest detectable change.
type Course struct {
	Changes []Change
	// Finds is the smallest change in the middle of the series that would be found in 4 of 5
	// histories, as a share. It is infinite with too few values, and NaN if a value is not
	// positive.
	Finds   float64
	Widened float64 // factor on the noise, for values that depend on earlier ones
}

// Change is a level change in a series. It compares the values up to the next change with
// those since the previous one.
type Change struct {
	At int // index of the first value at the new level
	Comparison
}

// Changes finds the level changes in series that are tested together, such as all figures of a
// history. Each value is the result of one run, so the noise is the variation between runs.
//
// A series is cut where the Mann–Whitney U test separates the values before and after best. The
// search covers the whole series, and windows of a half, a quarter and so on that overlap by
// half (seeded binary segmentation: Kovács, Bühlmann, Li and Munk, Biometrika 110 (2023)
// 249–256). Each part is cut in the same way until no cut is significant. MongoDB's E-divisive
// (Matteson and James, JASA 109 (2014) 334–345; Daly et al., ICPE 2020) and Apache Otava
// (Fleming et al., Hunter, ICPE 2023) work alike with other tests. Ranks are robust to
// outliers. The p-value of each cut is multiplied by the number of cuts tried and by the number
// of series (Bonferroni). Otava's t-test assumes a cut chosen beforehand, and a permutation test
// assumes independent runs.
//
// Runs may depend on each other, because machines drift. So the values minus their levels are
// tested for dependence, see [CompareAll]. If they are dependent, the normal deviations of the
// test are divided by the root of (1+ρ)/(1−ρ).
func Changes(all [][]float64) []Course {
	out, residuals, levels := make([]Course, len(all)), make([][]float64, len(all)), make([]int, len(all))
	asked := 0
	for i, values := range all {
		if len(values) >= ShortestSeries {
			asked++
		}
		s := newSegments(values, Alpha, 0)
		s.cut(0, len(values))
		residuals[i], levels[i] = s.residuals(), len(s.cuts)+1
	}
	rhos := correlations(residuals, levels...)
	long := persistence(residuals, levels, rhos)
	for i, rho := range rhos {
		s := newSegments(all[i], ChangeAlpha/float64(asked), rho)
		if rho > 0 {
			s.widened = max(s.widened, math.Sqrt(long))
		}
		s.cut(0, len(all[i]))
		s.settle()
		out[i] = Course{Widened: s.widened, Finds: s.finds()}
		for k := range s.cuts {
			out[i].Changes = append(out[i].Changes, s.change(k, asked))
		}
	}
	return out
}

// mostLags is the largest lag in the correlation of dependent runs; a tenth of the runs is
// another limit. Noise hides a slow drift of the machine at lag 1.
const mostLags = 6

// persistence returns the factor by which dependent runs reduce the effective number of runs:
// 1 + 2·Σρ of ranks over the lags. It is the mean over all series, because all series share the
// drift of the machine. Each removed level hides a part of the correlation.
func persistence(residuals [][]float64, levels []int, rhos []float64) float64 {
	sum, of := 0.0, 0.0
	for i, d := range residuals {
		n := float64(len(d))
		if !(rhos[i] > 0) {
			continue
		}
		ranks, lags := placed(d), min(mostLags, len(d)/10)
		squares, products := 0.0, 0.0
		for t, r := range ranks {
			squares += (r - (n-1)/2) * (r - (n-1)/2)
			for k := 1; k <= lags && t+k < len(ranks); k++ {
				products += (r - (n-1)/2) * (ranks[t+k] - (n-1)/2)
			}
		}
		if squares == 0 {
			continue // all values are equal
		}
		hidden := float64(lags*levels[i]) * (1 + rhos[i]) / (1 - rhos[i]) / n
		sum, of = sum+1+2*(products/squares+hidden), of+1
	}
	return max(1, sum/max(of, 1))
}

// segments is a series that is being cut.
type segments struct {
	values     []float64 // as logarithms if all are positive
	logarithms bool
	level      float64 // limit for the p-value of a cut multiplied by the number of cuts tried
	widened    float64
	cuts       []cut // ascending
}

func newSegments(values []float64, level, rho float64) *segments {
	s := &segments{values: slices.Clone(values), level: level, widened: math.Sqrt((1 + rho) / (1 - rho)), logarithms: true}
	for _, v := range values {
		s.logarithms = s.logarithms && v > 0
	}
	for i, v := range values {
		if s.logarithms {
			s.values[i] = math.Log(v)
		}
	}
	return s
}

// cut is a position in a series and the p-value of its test.
type cut struct {
	at int
	p  float64
}

// cut cuts a part of the series at the best position, then each side of it.
func (s *segments) cut(from, to int) {
	best, tried := cut{p: 1}, 0
	for parts := 1; (to-from)/parts >= ShortestSeries; parts *= 2 {
		length, windows := (to-from)/parts, 2*parts-1
		for i := range windows {
			begin := from + i*(to-from-length)/max(windows-1, 1)
			tried += length - 2*shortest + 1
			if at, z := bestSplit(s.values[begin : begin+length]); z > 0 {
				if p := s.p(s.values[begin:begin+length], at, z); p < best.p {
					best = cut{begin + at, p}
				}
			}
		}
	}
	if best.p *= float64(tried); tried == 0 || !(best.p < s.level) {
		return
	}
	s.cut(from, best.at)
	s.cuts = append(s.cuts, best)
	s.cut(best.at, to)
}

// bestSplit returns the position at which the ranks before and after differ most. z is the
// difference in standard deviations.
func bestSplit(values []float64) (at int, z float64) {
	n, sum := float64(len(values)), 0.0
	for i, rank := range placed(values) {
		sum += rank
		before := float64(i + 1)
		if i+1 < shortest || len(values)-i-1 < shortest {
			continue
		}
		if one := math.Abs(sum-before*(n-1)/2) / math.Sqrt(before*(n-before)*(n+1)/12); one > z {
			at, z = i+1, one
		}
	}
	return at, z
}

const (
	exactU  = 64  // largest number of values for the exact U test
	plainly = 2.5 // normal deviations above which the exact test is used
)

// p returns the p-value of a cut.
func (s *segments) p(values []float64, at int, z float64) float64 {
	p := 2 * stats.StdNormal.CDF(-z)
	if z <= plainly {
		return p // far above the level of a change, so the approximation is enough
	}
	if n := len(values); n <= exactU {
		u := 0.0 // pairs with the larger value before; equal pairs count half
		for _, a := range values[:at] {
			for _, b := range values[at:] {
				switch {
				case a > b:
					u++
				case a == b:
					u += 0.5
				}
			}
		}
		d := stats.UDist{N1: at, N2: n - at}
		p = min(1, 2*d.CDF(math.Ceil(min(u, float64(at*(n-at))-u))))
	}
	if s.widened > 1 {
		p = max(p, s.dependent(values, at)) // the p-value cannot be below that of the rank test
	}
	return p
}

// dependent returns the p-value of a cut in dependent values. It uses Student's t for the
// Hodges–Lehmann shift, because ranks do not measure how far a shift exceeds the dependence.
func (s *segments) dependent(values []float64, at int) float64 {
	before, after := float64(at), float64(len(values)-at)
	count := max(fewestEffective, float64(len(values))/(s.widened*s.widened))
	var shifts, sizes []float64
	for _, level := range [][]float64{values[:at], values[at:]} {
		_, off := deviations(level)
		sizes = append(sizes, off...)
	}
	for _, a := range values[:at] {
		for _, b := range values[at:] {
			shifts = append(shifts, b-a)
		}
	}
	noise := robustly * middleOf(sizes) * math.Sqrt(count/(count-2)) * s.widened
	t := math.Abs(middleOf(shifts)) / (noise * math.Sqrt(1/before+1/after))
	return 2 * (1 - stats.TDist{V: max(fewestEffective, count-2)}.CDF(t))
}

// robustly converts a median absolute deviation of normal values to a standard deviation, and
// the uncertainty of a mean to that of ranks.
var robustly = 1.4826 * math.Sqrt(math.Pi/3)

const nearby = 25 // largest distance by which settle moves a cut

// settle moves each cut to the position where the values are closest to the medians on both
// sides (Bai, Econometric Theory 11 (1995) 403–436). A cut stays between its neighbours. Ranks
// do not distinguish between values beyond all values of the other side.
func (s *segments) settle() {
	away := func(level []float64) (sum float64) {
		_, off := deviations(level)
		for _, v := range off {
			sum += v
		}
		return sum
	}
	for k := range s.cuts {
		from, to := s.around(k)
		found, least := s.cuts[k].at, math.Inf(1)
		for at := max(from+shortest, found-nearby); at <= min(to-shortest, found+nearby); at++ {
			if sum := away(s.values[from:at]) + away(s.values[at:to]); sum < least {
				s.cuts[k].at, least = at, sum
			}
		}
	}
}

// around returns the start of the level before a cut and the end of the level after it.
func (s *segments) around(k int) (from, to int) {
	to = len(s.values)
	if k > 0 {
		from = s.cuts[k-1].at
	}
	if k+1 < len(s.cuts) {
		to = s.cuts[k+1].at
	}
	return from, to
}

// residuals returns the values minus the medians of their levels.
func (s *segments) residuals() []float64 {
	var out []float64
	from := 0
	for _, c := range append(slices.Clone(s.cuts), cut{at: len(s.values)}) {
		level := s.values[from:c.at]
		middle := middleOf(level)
		for _, v := range level {
			out = append(out, v-middle)
		}
		from = c.at
	}
	return out
}

// foundInFour is the number of normal deviations by which the expected value of a test must
// exceed its level to find 4 of 5 changes.
const foundInFour = 0.84

// finds computes [Course].Finds from the logarithms of the values. The noise is 1.4826 times
// the median absolute residual. A rank test needs about 5 % more values than a test of means.
func (s *segments) finds() float64 {
	n := len(s.values)
	sizes := make([]float64, 0, n)
	for _, r := range s.residuals() {
		sizes = append(sizes, math.Abs(r))
	}
	if !s.logarithms {
		return math.NaN()
	}
	level, ok := attainable(n, s.level)
	if !ok {
		return math.Inf(1)
	}
	needed := -stats.StdNormal.InvCDF(level / 2)
	if s.widened > 1 {
		needed = studentT(1-level, max(fewestEffective, float64(n)/(s.widened*s.widened)-2))
	}
	return math.Expm1((foundInFour + needed) * robustly * middleOf(sizes) * s.widened * 2 / math.Sqrt(float64(n)))
}

// attainable reports whether the ranks of n values can show a change in the middle. each is the
// p-value that one cut needs after the correction for all cuts tried.
func attainable(n int, level float64) (each float64, ok bool) {
	tried := 0
	for parts := 1; n/parts >= ShortestSeries; parts *= 2 {
		tried += (2*parts - 1) * (n/parts - 2*shortest + 1)
	}
	each = level / float64(tried)
	far, _ := math.Lgamma(float64(n/2 + 1))
	rest, _ := math.Lgamma(float64(n - n/2 + 1))
	whole, _ := math.Lgamma(float64(n + 1))
	return each, tried > 0 && 2*math.Exp(far+rest-whole) < each
}

// PointsNeeded returns the number of points per series that makes any change in the middle
// detectable.
func PointsNeeded(series int) int {
	for n := ShortestSeries; ; n++ {
		if _, ok := attainable(n, ChangeAlpha/float64(max(1, series))); ok {
			return n
		}
	}
}

// change compares the levels before and after a cut.
func (s *segments) change(k, asked int) Change {
	from, to := s.around(k)
	at := s.cuts[k].at
	c := Comparison{N1: at - from, N2: to - at, Shift: math.NaN(), Lo: math.NaN(), Hi: math.NaN(), P: 1, PSame: 1, Widened: s.widened}
	c.test(scaled{old: s.values[from:at], new: s.values[at:to], logarithms: s.logarithms}, 0, Alpha)
	c.Runs, c.P, c.Adjusted, c.Verdict = true, s.cuts[k].p, min(1, s.cuts[k].p*float64(asked)), Different
	c.Why = fmt.Sprintf("%s of %d and %d runs, multiplied by all tried cuts and by %d series", P(c.Adjusted), c.N1, c.N2, asked)
	return Change{at, c}
}
