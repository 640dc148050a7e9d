package stat

import (
	"maps"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"
)

// Rounds maps round numbers to values. Failed rounds are missing.
type Rounds map[int]float64

// Comparison is the comparison of new with old. Shift, its interval and Margin are relative
// to old: 0.05 is 5 % more.
type Comparison struct {
	N1, N2 int  // number of rounds of old and of new
	Pairs  int  // number of common rounds; 0: compared as independent samples
	Runs   bool // N1, N2 and Pairs count runs, because a side has several, see [acrossRuns]

	// Shift is the Hodges–Lehmann estimate of new / old − 1. Lo and Hi are its interval at
	// confidence 1 − [Alpha]. All are NaN if a value is not positive. Lo and Hi are also NaN
	// with too few rounds.
	Shift, Lo, Hi float64

	// P is the two-sided p-value for no difference. PSame is the p-value for a difference of at
	// least Margin (two one-sided tests). Both are 1 without a test.
	P, PSame, Margin float64

	// Adjusted is P adjusted for the other comparisons of the table.
	Adjusted float64
	Verdict  Verdict
	Why      string // reason for the verdict

	// Widened is the factor by which the interval was widened and the tests were weakened
	// because rounds depend on earlier ones. It is 1 for independent rounds.
	Widened float64

	seen tested // nil without a shift
	at   int    // index in the table
}

// Verdict is the result of a comparison.
type Verdict string

// Verdicts.
const (
	Different Verdict = "different"
	Same      Verdict = "same"        // the difference is below the margin
	Undecided Verdict = "not decided" // neither test was significant
)

// Sides are the two sides of a comparison. If PerRun is above 0, the rounds may belong to
// several runs: round r belongs to run r / PerRun.
type Sides struct {
	Old, New Rounds
	PerRun   int

	// Between is the variance of log(new / old) between two equal runs, in addition to the
	// variance of their rounds. Freedom is its degrees of freedom. Both are used in the
	// interval and the tests; 0: unknown.
	Between, Freedom float64
}

// DefaultMargin is the default difference below which two targets count as the same.
const DefaultMargin = 0.05

// CompareAll compares the sides of all rows of a table. The verdict is Different if the
// p-value for no difference, adjusted for all rows, is below [Alpha]. It is Same if the
// adjusted p-value for a difference beyond the margin is below Alpha. Otherwise it is
// Undecided. A margin of 0 selects the [DefaultMargin].
//
// Events on the machine in a round affect both sides. Comparing pairs cancels such common noise
// and drift. Wilcoxon's signed-rank test is applied to the logarithms of new / old within a
// round. It is exact up to 50 pairs, with Pratt's method for equal pairs and middle ranks for
// ties. The estimate is that of Hodges and Lehmann, the median of all means of two, with the
// interval that inverts the test. Both assume that the logarithms are symmetric around their
// median. This is true for two sides with the same kind of noise.
//
// Sides without a common round are compared by the Mann–Whitney U test and the median of all
// ratios. If a side has several runs, each run counts once, see [acrossRuns]. If a value is
// not positive, such as a change of memory, differences replace logarithms and the shift is
// missing.
//
// Rounds may depend on earlier ones. From 10 pairs on, this is tested for all comparisons
// together and for each (Bartels' rank version of von Neumann's ratio). n dependent pairs count
// as n·(1−ρ)/(1+ρ) pairs. Their correlation ρ is corrected for its bias. A moving-block
// bootstrap would need many more rounds: with a correlation of 0.6 and 20 rounds it found a
// difference in 27 of 100 equal pairs. docs/statistics.md has the simulations.
//
// References: Wilcoxon, Biometrics Bulletin 1 (1945) 80–83; Pratt, JASA 54 (1959)
// 655–667; Hodges and Lehmann, Annals of Mathematical Statistics 34 (1963) 598–611;
// Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987) 657–680
// (two one-sided tests); Mann and Whitney, Annals of Mathematical Statistics 18
// (1947) 50–60; Bartels, JASA 77 (1982) 40–46; Bayley and Hammersley, Supplement to
// the JRSS 8 (1946) 184–197 (effective number); Kendall, Biometrika 41 (1954)
// 403–404 (bias).
func CompareAll(table []Sides, margin float64, by Adjustment) []Comparison {
	if !(margin > 0) || !Finite(margin) {
		margin = DefaultMargin
	}
	out, differences := make([]Comparison, len(table)), make([][]float64, len(table))
	sides := make([]scaled, len(table))
	for i, s := range table {
		out[i] = Comparison{at: i, Shift: math.NaN(), Lo: math.NaN(), Hi: math.NaN(), P: 1, PSame: 1, Margin: margin, Widened: 1}
		sides[i] = out[i].take(s)
		if !out[i].Runs {
			differences[i] = sides[i].differences
		}
	}
	for i, rho := range correlations(differences) {
		if !out[i].Runs {
			rho = max(rho, sides[i].oneSided())
		}
		out[i].test(sides[i], rho, Alpha)
	}
	decide(out, by)
	return out
}

// oneSided returns the correlation of the differences if the rounds of exactly one side depend
// on earlier ones, else 0. The noise of the other side hides this correlation in the
// differences. If both sides are dependent, the cause is the machine: the dependence either
// cancels or shows in the differences.
func (s *scaled) oneSided() float64 {
	if len(s.differences) < fewestDependent || len(s.old) != len(s.new) {
		return 0
	}
	old, okOld := serial(s.old, 1)
	new, okNew := serial(s.new, 1)
	shown := stats.StdNormal.InvCDF(1 - sideAlpha)
	if !okOld || !okNew || (old.z > shown) == (new.z > shown) {
		return 0
	}
	side, rho, other := Variance(s.old), old.rho, Variance(s.new)
	if new.z > shown {
		side, rho, other = other, new.rho, side
	}
	rho = min(max(rho, 0), mostDependent)
	inflated := (side*(1+rho)/(1-rho) + other) / (side + other)
	return (inflated - 1) / (inflated + 1)
}

// ShiftPrecision returns the larger half of the interval of new / old at a confidence (0 to
// 1). It returns infinity without an interval.
func ShiftPrecision(old, new Rounds, confidence float64) float64 {
	c := Comparison{Lo: math.NaN(), Hi: math.NaN(), Widened: 1}
	s := c.take(Sides{Old: old, New: new})
	if c.test(s, max(correlations([][]float64{s.differences})[0], s.oneSided()), 1-confidence); !Finite(c.Lo) || !Finite(c.Hi) {
		return math.Inf(1)
	}
	return max(c.Hi-c.Shift, c.Shift-c.Lo)
}

// scaled holds two sides, as logarithms if all values are positive.
type scaled struct {
	old, new    []float64
	differences []float64 // of common rounds, in order
	logarithms  bool

	between, freedom float64 // see [Sides]
}

// take converts the finite values of both sides.
func (c *Comparison) take(s Sides) (out scaled) {
	out.logarithms, out.between, out.freedom = true, s.Between, s.Freedom
	keep := func(r Rounds) (kept []float64, run []int) {
		for _, round := range slices.Sorted(maps.Keys(r)) {
			if v := r[round]; Finite(v) {
				kept, run = append(kept, v), append(run, s.run(round))
				out.logarithms = out.logarithms && v > 0
			}
		}
		return kept, run
	}
	var oldRun, newRun, pairRun []int
	out.old, oldRun = keep(s.Old)
	out.new, newRun = keep(s.New)
	scale := func(v float64) float64 { return v }
	if out.logarithms {
		scale = math.Log
	}
	for _, side := range [][]float64{out.old, out.new} {
		for i, v := range side {
			side[i] = scale(v)
		}
	}
	for _, round := range slices.Sorted(maps.Keys(s.Old)) {
		was, is := s.Old[round], s.New[round]
		if _, both := s.New[round]; both && Finite(was) && Finite(is) {
			out.differences, pairRun = append(out.differences, scale(is)-scale(was)), append(pairRun, s.run(round))
		}
	}
	switch {
	case len(pairRun) > 0 && severalRuns(pairRun):
		out.differences = ofRuns(out.differences, pairRun, hodgesLehmann)
		out.old, out.new, c.Runs = ofRuns(out.old, oldRun, middleOf), ofRuns(out.new, newRun, middleOf), true
	case len(pairRun) == 0 && (severalRuns(oldRun) || severalRuns(newRun)):
		out.old, out.new, c.Runs = ofRuns(out.old, oldRun, middleOf), ofRuns(out.new, newRun, middleOf), true
	}
	c.N1, c.N2, c.Pairs = len(out.old), len(out.new), len(out.differences)
	return out
}

// test sets the p-values and the interval at confidence 1 − alpha.
func (c *Comparison) test(s scaled, rho, alpha float64) {
	if c.N1 == 0 || c.N2 == 0 {
		return
	}
	test, middle, lo, hi, known := c.acrossRuns(s, alpha)
	if !known {
		test, middle, lo, hi = c.byRank(s, rho, alpha)
	}
	if s.between > 0 && s.logarithms {
		test, lo, hi = c.betweenRuns(s, middle, lo, hi, alpha)
	}
	less, greater := test(0)
	c.P = min(1, 2*min(less, greater))
	if !s.logarithms {
		return
	}
	c.seen, c.Shift, c.Lo, c.Hi = test, math.Expm1(middle), math.Expm1(lo), math.Expm1(hi)
	below, _ := test(math.Log1p(c.Margin))
	_, above := test(-math.Log1p(c.Margin))
	c.PSame = min(1, max(below, above))
}

// byRank returns the rank test and the interval, which is NaN with too few rounds.
func (c *Comparison) byRank(s scaled, rho, alpha float64) (test tested, middle, lo, hi float64) {
	var all *many
	var rank int
	if c.Pairs > 0 {
		test, all, rank = c.paired(s.differences, rho, alpha)
	} else {
		test, all, rank = independent(s.old, s.new, alpha)
	}
	middle, lo, hi = all.median(), math.NaN(), math.NaN()
	if rank > 0 {
		lo, hi = middle-c.Widened*(middle-all.at(rank-1)), middle+c.Widened*(all.at(all.n-rank)-middle)
	}
	return test, middle, lo, hi
}

// tested returns the one-sided p-values of the data under a shift: for a result this small or
// smaller, and for one this large or larger.
type tested func(shift float64) (less, greater float64)

// studentTest returns Student's t-test and its interval for an estimate and its standard
// error.
func studentTest(middle, unsure, freedom, alpha float64) (test tested, lo, hi float64) {
	t, half := stats.TDist{V: freedom}, unsure*studentT(1-alpha, freedom)
	return func(shift float64) (less, greater float64) {
		less = t.CDF((middle - shift) / unsure)
		return less, 1 - less
	}, middle - half, middle + half
}

// paired returns the test of differences within a round, all their shifts, and the rank of
// the bounds among these. For dependent rounds the test uses the widened interval, because
// ranks do not measure how far a shift exceeds the dependence.
func (c *Comparison) paired(d []float64, rho, alpha float64) (test tested, all *many, rank int) {
	all, rank = walsh(d), walshRank(len(d), alpha)
	exact := func(shift float64) (less, greater float64) {
		moved := make([]float64, len(d))
		for i := range d {
			moved[i] = d[i] - shift
		}
		return signedRank(moved)
	}
	if !(rho > 0) {
		return exact, all, rank
	}
	by, inflated, freedom := widening(len(d), rho, alpha)
	c.Widened = by
	normal, middle := stats.StdNormal.InvCDF(1-alpha/2), all.median()
	below, above := (middle-all.at(rank-1))*inflated/normal, (all.at(all.n-rank)-middle)*inflated/normal
	return func(shift float64) (less, greater float64) {
		t := stats.TDist{V: freedom}
		exactLess, exactGreater := exact(shift)
		switch {
		case shift < middle:
			greater = t.CDF((shift - middle) / below)
		case shift > middle:
			greater = 1 - t.CDF((middle-shift)/above)
		default:
			greater = 0.5
		}
		return max(1-greater, exactLess), max(greater, exactGreater) // the p-values cannot be below those of the rank test
	}, all, rank
}

// independent is [Comparison.paired] for samples without a common round.
func independent(before, after []float64, alpha float64) (test tested, all *many, rank int) {
	all = shifts(before, after)
	middle := all.median()
	return func(shift float64) (less, greater float64) {
		moved := make([]float64, len(after))
		for i := range after {
			moved[i] = after[i] - shift
		}
		p := mannWhitney(before, moved)
		if middle < shift {
			return p / 2, 1 - p/2
		}
		return 1 - p/2, p / 2
	}, all, apartRank(len(before), len(after), alpha)
}

// mannWhitney returns the two-sided p-value, or 1 if no test is possible. It caps the value at
// 1 because benchmath doubles the smaller tail, which can exceed one half with ties.
func mannWhitney(a, b []float64) float64 {
	thresholds := benchmath.DefaultThresholds
	thresholds.CompareAlpha = Alpha
	u := benchmath.AssumeNothing.Compare(
		benchmath.NewSample(slices.Clone(a), &thresholds),
		benchmath.NewSample(slices.Clone(b), &thresholds))
	return min(u.P, 1)
}
