package stat

import (
	"math"
	"strings"
	"testing"
)

// compare compares two sides that are the only comparison of their table.
func compare(old, new Rounds) Comparison {
	return CompareAll([]Sides{{Old: old, New: new}}, 0, Holm)[0]
}

func TestCompare(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	up := func(n int, by float64) (old, new Rounds) {
		old, new = Rounds{}, Rounds{}
		for i := range n {
			old[i] = 100 + float64(i)*0.1
			new[i] = old[i] * (1 + by + 0.0001*float64(i%3))
		}
		return old, new
	}
	without := func(r Rounds, rounds ...int) Rounds {
		for _, i := range rounds {
			delete(r, i)
		}
		return r
	}
	shift := func(by float64, n int) func() (Rounds, Rounds) {
		return func() (Rounds, Rounds) { return up(n, by) }
	}
	constant := func(n int, v float64) Rounds {
		r := Rounds{}
		for i := range n {
			r[i] = v
		}
		return r
	}
	for _, tt := range []struct {
		name  string
		sides func() (old, new Rounds)
		want  Verdict
		pairs int
		why   string
	}{
		{"clear shift in ten rounds is a difference", shift(0.1, 10), Different, 10, "interval +10.00% to +10.0"},
		{"clear gain is a difference", shift(-0.1, 10), Different, 10, "interval -10.00% to -9.9"},
		{"six rounds can show a difference", shift(0.1, 6), Different, 6, "p=0.031 of 6 pairs"},
		{"five rounds are too few for any difference", shift(0.5, 5), Undecided, 5, "too few rounds: 5 in both, of the 6 that the table needs"},
		{"the same values are the same", func() (Rounds, Rounds) { r := constant(10, 7); return r, r }, Same, 10, "less than 5 % apart"},
		{"tiny shift in every round is a difference", shift(0.001, 10), Different, 10, "interval +0.1"},
		{"scatter around the margin is not decided", func() (Rounds, Rounds) {
			old, new := up(10, 0)
			for i := range new {
				new[i] *= 1 + 0.2*float64(i%2) - 0.1
			}
			return old, new
		}, Undecided, 10, "neither a difference"},
		{"failed rounds are not paired", func() (Rounds, Rounds) {
			old, new := up(10, 0.1)
			return without(old, 0, 1), without(new, 2, 3)
		}, Different, 6, ""},
		{"sides without a common round are independent samples", func() (Rounds, Rounds) {
			old, new := up(20, 0.5)
			return without(old, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9), without(new, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
		}, Different, 0, "of 10 and 10 rounds, none of them common"},
		{"side without values is undecided", func() (Rounds, Rounds) {
			old, _ := up(10, 0)
			return old, nil
		}, Undecided, 0, "one side has no values"},
		{"empty sides are undecided", func() (Rounds, Rounds) { return nil, nil }, Undecided, 0, "no values"},
		{"NaN counts as a failed round", func() (Rounds, Rounds) {
			old, new := up(7, 0.1)
			old[3], new[3] = nan, math.Inf(1)
			return old, new
		}, Different, 6, ""},
		{"zero to nonzero is a difference without a percentage", func() (Rounds, Rounds) {
			_, new := up(10, 0)
			return constant(10, 0), new
		}, Different, 10, "p=0.002 of 10 pairs"},
	} {
		old, new := tt.sides()
		c := compare(old, new)
		if c.Verdict != tt.want || c.Pairs != tt.pairs || !strings.Contains(c.Why, tt.why) || c.Why == "" {
			t.Errorf("%s: got %+v", tt.name, c)
		}
		if math.IsNaN(c.P) || c.P < 0 || c.P > 1 || c.Margin != DefaultMargin {
			t.Errorf("%s: %+v", tt.name, c)
		}
	}
}

// Examples 3.1 and 3.3 of Hollander, Wolfe and Chicken, Nonparametric Statistical
// Methods: Hamilton's depression scale before and after a tranquilizer.
func TestSignedRankMatchesThePublishedExample(t *testing.T) {
	t.Parallel()
	x := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	y := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	d := make([]float64, len(x))
	for i := range x {
		d[i] = y[i] - x[i]
	}
	less, greater := signedRank(d)
	if !near(less, 10.0/512) || !near(greater, 505.0/512) {
		t.Errorf("p is %g and %g", less, greater)
	}
	w := walsh(d)
	if k := walshRank(len(d), 0.05); math.Abs(w.median()-(-0.46)) > 1e-9 || math.Abs(w.at(k-1)-(-0.786)) > 1e-9 || math.Abs(w.at(w.n-k)-(-0.010)) > 1e-9 {
		t.Errorf("centre %g [%g, %g]", w.median(), w.at(k-1), w.at(w.n-k))
	}
}

func TestTiesShareRanksAndZerosAreDropped(t *testing.T) {
	t.Parallel()
	// Rank 1 is the zero, then 2.5, 2.5 and 4. The sum of the positive ranks is 6.5 of 9.
	// Three of the 8 sign arrangements have a sum at least as large: 9, 6.5 and 6.5.
	less, greater := signedRank([]float64{0, 1, -1, 2})
	if !near(greater, 3.0/8) || !near(less, 7.0/8) {
		t.Errorf("p is %g and %g", less, greater)
	}
}

func TestNormalApproximationAgreesWithTheExactTest(t *testing.T) {
	t.Parallel()
	r := seeded(3)
	d := make([]float64, maxExact+1)
	for i := range d {
		d[i] = 0.3 + r.NormFloat64()
	}
	_, few := signedRank(d[:maxExact])
	_, many := signedRank(d)
	if math.Abs(few-many) > 0.01 || few > 0.1 {
		t.Errorf("p of %d pairs is %g, with one more %g", maxExact, few, many)
	}
}

func TestDependentRoundsCountLess(t *testing.T) {
	t.Parallel()
	r := seeded(8)
	walk, level := make([]float64, 40), 0.0
	for i := range walk {
		level = 0.8*level + r.NormFloat64()
		walk[i] = level
	}
	alternating, independent := make([]float64, 40), make([]float64, 40)
	for i := range alternating {
		alternating[i], independent[i] = float64(i%2)+0.01*r.NormFloat64(), r.NormFloat64()
	}
	for _, tt := range []struct {
		name        string
		samples     [][]float64
		least, most float64 // bounds of the effective number of rounds
	}{
		{"autocorrelated values", [][]float64{walk}, 2, 20},
		{"independent sample among autocorrelated ones", [][]float64{independent, walk, walk, walk}, 2, 20},
		{"alternating values", [][]float64{alternating}, 40, 40},
		{"equal values", [][]float64{make([]float64, 40)}, 40, 40},
		{"nine values", [][]float64{walk[:9], walk}, 9, 9},
		{"none", [][]float64{nil}, 3, 3},
	} {
		if n := effective(len(tt.samples[0]), correlations(tt.samples)[0]); n < tt.least || n > tt.most {
			t.Errorf("%s: effective number of %d rounds is %g", tt.name, len(tt.samples[0]), n)
		}
	}
}

func TestAdjustment(t *testing.T) {
	t.Parallel()
	var table []Comparison
	for _, p := range []float64{0.05, 0.01, 0.04, 0.005, 1} {
		table = append(table, Comparison{N1: 9, N2: 9, Pairs: 9, P: p, PSame: 1})
	}
	for by, want := range map[Adjustment][]float64{
		Holm: {0.12, 0.04, 0.12, 0.025, 1},
		BH:   {0.0625, 0.025, 0.0625, 0.025, 1},
		Raw:  {0.05, 0.01, 0.04, 0.005, 1},
		"":   {0.12, 0.04, 0.12, 0.025, 1},
	} {
		decide(table, by)
		for i, d := range table {
			if !near(d.Adjusted, want[i]) || (d.Verdict == Different) != (want[i] < Alpha) {
				t.Errorf("%s: %g became %g, %s; want %g", by, table[i].P, d.Adjusted, d.Verdict, want[i])
			}
		}
	}
}

func TestRoundsForComparisons(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 6, 1: 6, 2: 7, 5: 8, 25: 10, 30: 11, 100: 12} {
		if got := RoundsFor(n, Holm); got != want || RoundsFor(n, "") != want || RoundsFor(n, Raw) != 6 || RoundsFor(n, BH) != 6 {
			t.Errorf("%d comparisons: %d, want %d", n, got, want)
		}
	}
}

func TestRanksLimitPValues(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 12, 20} {
		old, new := Rounds{}, Rounds{}
		for i := range n {
			old[i], new[i] = 100, 200*math.Exp(0.01*float64(i)) // fully dependent on its neighbours
		}
		if c := compare(old, new); c.Widened <= 1 || c.P < math.Exp2(1-float64(n)) {
			t.Errorf("%d rounds: p is %g", n, c.P)
		}
	}
}

func TestSwappingSidesKeepsTheVerdict(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := seeded(seed)
		factors := wandering(r, 6+int(seed%20))
		a, b := run(r, factors, 100, 0.03), run(r, factors, 104, 0.03)
		ab, ba := compare(a, b), compare(b, a)
		if !near(ab.P, ba.P) || !near(ab.PSame, ba.PSame) || !near(1+ab.Lo, 1/(1+ba.Hi)) {
			t.Fatalf("seed %d:\n%+v\n%+v", seed, ab, ba)
		}
	}
}

// benchmath doubles the smaller tail and returns 1.71 for these ties.
func TestPIsAProbability(t *testing.T) {
	t.Parallel()
	if p := mannWhitney([]float64{1}, []float64{0, 1, 1, 1, 1, 1}); p > 1 {
		t.Errorf("p is %v", p)
	}
}
