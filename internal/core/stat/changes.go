package stat

import (
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// ChangeAlpha is how often a history in which nothing changed may show any change.
const ChangeAlpha = 0.01

// shortest is of how few values a level consists at least: fewer may be outliers. In a
// series of less than ShortestSeries nothing is looked for.
const (
	shortest       = 3
	ShortestSeries = 2 * shortest
)

// Course is how a series goes on: the places at which its level changes, and how small
// a change its noise lets be found.
type Course struct {
	Changes []Change
	// Finds is the smallest change, as a share, that would be found in 4 of 5 histories
	// if it lay in the middle of this one; infinite where there are too few values, NaN
	// where they have no share of each other.
	Finds   float64
	Widened float64 // by how much the noise counts for more, for values that depend on those before
}

// Change is a place at which the level of a series changes. It compares the values
// from there to the next change with those back to the last.
type Change struct {
	At int // the first value of the new level
	Comparison
}

// Changes finds where the levels of series change that are read together, such as all
// figures of a history; each value is what one run came to, so that what differs from
// run to run is the noise.
//
// A series is cut where the Mann–Whitney U test tells what is before from what is after
// best, in all of it and in windows of a half, a quarter and so on that overlap by half
// (seeded binary segmentation: Kovács, Bühlmann, Li and Munk, Biometrika 110 (2023)
// 249–256), and so are its parts, as long as a cut is shown. That is what MongoDB's
// E-divisive (Matteson and James, JASA 109 (2014) 334–345; Daly et al., ICPE 2020) and
// Apache Otava (Fleming et al., Hunter, ICPE 2023) do, but for what they test by: ranks
// are moved little by a run that is an outlier, and the p-value of each cut is
// multiplied by all cuts that were tried and by all series (Bonferroni), where Otava's
// t-test is that of a cut chosen beforehand, and a permutation test takes runs for
// independent.
//
// They need not be: machines drift. So the values without their levels are tested for
// dependence, see [CompareAll], and where it shows, what the test has of normal
// deviations is divided by the root of (1+ρ)/(1−ρ).
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

// mostLags is up to how far back runs are held against each other where they depend on
// the one before, a tenth of them at most: noise of their own hides how long a machine's
// drift lasts from a look at neighbours alone.
const mostLags = 6

// persistence is by how much runs that depend on each other count for fewer: 1 + 2·Σρ over
// the lags, of ranks, the mean of all series, as what lasts is the machine's. Each level
// that was taken off hides some of each.
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
			continue // all are equal: they tell nothing of how runs depend on each other
		}
		hidden := float64(lags*levels[i]) * (1 + rhos[i]) / (1 - rhos[i]) / n
		sum, of = sum+1+2*(products/squares+hidden), of+1
	}
	return max(1, sum/max(of, 1))
}

// segments are a series that is being cut.
type segments struct {
	values     []float64 // as logarithms where all are positive
	logarithms bool
	level      float64 // below which the p-value of a cut is, all that were tried being counted
	widened    float64
	cuts       []cut // in their order
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

// cut is a place, and how probable it is by chance that values differ so much there.
type cut struct {
	at int
	p  float64
}

// cut cuts a part of the series where it can be cut best, then what is on both sides.
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

// bestSplit is where the ranks before and after differ most, and by how many standard
// deviations.
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

// Up to how many values the U test is exact, and from how many normal deviations on
// that makes a difference.
const (
	exactU  = 64
	plainly = 2.5
)

// p is that of one cut.
func (s *segments) p(values []float64, at int, z float64) float64 {
	p := 2 * stats.StdNormal.CDF(-z)
	if z <= plainly {
		return p // far above the level of a change; where only levels are looked for, near enough
	}
	if n := len(values); n <= exactU {
		u := 0.0 // pairs in which the one before is larger; half of those that are equal
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
		p = max(p, s.dependent(values, at)) // never more than ranks can show
	}
	return p
}

// dependent is the p of a cut where values depend on those before them: of Student's t of
// the Hodges–Lehmann shift, as ranks would not tell a shift that is plain from one that
// is as large as the dependence.
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

// robustly makes a standard deviation of the median absolute one, where that is of the
// normal distribution, and of a mean's uncertainty that of ranks.
var robustly = 1.4826 * math.Sqrt(math.Pi/3)

// nearby is how far a cut is moved at most.
const nearby = 25

// settle puts each cut where values lie closest to the medians on both sides, between the
// cuts beside it (Bai, Econometric Theory 11 (1995) 403–436): to ranks a value is as far
// off as another that is beyond all of the other side.
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

// around is where the level before a cut begins, and where that behind it ends.
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

// residuals are the values without the median of their level.
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

// foundInFour is how many normal deviations beyond its level a test has to be expected
// at for 4 of 5 to be found.
const foundInFour = 0.84

// finds is [Course].Finds, of values that are logarithms: their noise is 1.4826 times
// the median absolute residual, and ranks take 5 % more of it than a mean would.
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

// attainable tells whether the ranks of n values can show a change in their middle, and
// below which p-value, all cuts that are tried being counted.
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

// PointsNeeded is how many points every one of so many series has to have for a change
// in the middle to be shown, however large it is.
func PointsNeeded(series int) int {
	for n := ShortestSeries; ; n++ {
		if _, ok := attainable(n, ChangeAlpha/float64(max(1, series))); ok {
			return n
		}
	}
}

// change compares what is on both sides of a cut.
func (s *segments) change(k, asked int) Change {
	from, to := s.around(k)
	at := s.cuts[k].at
	c := Comparison{N1: at - from, N2: to - at, Shift: math.NaN(), Lo: math.NaN(), Hi: math.NaN(), P: 1, PSame: 1, Widened: s.widened}
	c.test(scaled{old: s.values[from:at], new: s.values[at:to], logarithms: s.logarithms}, 0, Alpha)
	c.Runs, c.P, c.Adjusted, c.Verdict = true, s.cuts[k].p, min(1, s.cuts[k].p*float64(asked)), Different
	c.Why = fmt.Sprintf("%s of %d and %d runs, multiplied by all cuts that were tried and by %d series", P(c.Adjusted), c.N1, c.N2, asked)
	return Change{at, c}
}
