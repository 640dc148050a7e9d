package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/aclements/go-moremath/stats"
)

const perRun = 1000

// runs draws the rounds of several runs, each with its own level around 100.
func runs(r *rand.Rand, first, n, rounds int, between, within float64) Rounds {
	out := Rounds{}
	for run := range n {
		level := 100 * math.Exp(between*r.NormFloat64())
		for i, v := range lognormal(r, rounds, level, within) {
			out[(first+run)*perRun+i] = v
		}
	}
	return out
}

func TestEachRunCountsOnce(t *testing.T) {
	t.Parallel()
	r := seeded(1)
	level := func(runs map[int]float64) Rounds {
		out := Rounds{}
		for run, v := range runs {
			for i := range 20 {
				out[run*perRun+i] = v * (1 + 0.0001*float64(i%3))
			}
		}
		return out
	}
	for _, tt := range []struct {
		name     string
		sides    Sides
		n1, n2   int
		verdict  Verdict
		interval bool
	}{
		{"runs that differ as much as the sides are undecided", Sides{Old: level(map[int]float64{0: 100, 1: 110}), New: level(map[int]float64{2: 110, 3: 121})}, 2, 2, Undecided, true},
		{"five consistent runs show a shift", Sides{Old: level(map[int]float64{0: 100, 1: 101, 2: 99, 3: 100, 4: 101}), New: level(map[int]float64{5: 110, 6: 111, 7: 109, 8: 110, 9: 112})}, 5, 5, Different, true},
		{"single run has the scatter of the other side", Sides{Old: level(map[int]float64{0: 100, 1: 110, 2: 90, 3: 105, 4: 95}), New: level(map[int]float64{5: 110})}, 5, 1, Undecided, true},
		{"runs with both sides are paired", Sides{Old: level(map[int]float64{0: 100, 1: 200, 2: 300}), New: level(map[int]float64{0: 110, 1: 221, 2: 329})}, 3, 3, Different, true},
		{"runs without scatter are compared by ranks", Sides{Old: level(map[int]float64{0: 100, 1: 100}), New: level(map[int]float64{2: 120, 3: 120})}, 2, 2, Undecided, false},
	} {
		tt.sides.PerRun = perRun
		c := CompareAll([]Sides{tt.sides}, 0, Holm)[0]
		if !c.Runs || c.N1 != tt.n1 || c.N2 != tt.n2 || c.Verdict != tt.verdict || Finite(c.Lo) != tt.interval {
			t.Errorf("%s: got %+v", tt.name, c)
		}
	}
	one := CompareAll([]Sides{{Old: runs(r, 0, 1, 20, 0, 0.01), New: runs(r, 1, 1, 20, 0, 0.01), PerRun: perRun}}, 0, Holm)[0]
	if one.Runs || one.N1 != 20 || one.Pairs != 0 {
		t.Errorf("one run per side: %+v", one)
	}
}

// For 1, 2, 3, 4, 5 and 3, 5, 7: 2 ÷ √(2.5/5 + 4/3) = 1.4771, with (11/6)² ÷ ((1/2)²/4 +
// (4/3)²/2) = 3.5328 degrees of freedom.
func TestWelchMatchesTheFormula(t *testing.T) {
	t.Parallel()
	old, new := []float64{1, 2, 3, 4, 5}, []float64{3, 5, 7}
	variance, freedom := welch(stats.Variance(old), stats.Variance(new), 5, 3)
	between := (stats.Mean(new) - stats.Mean(old)) / math.Sqrt(variance)
	if math.Abs(between-1.4771) > 1e-4 || math.Abs(freedom-3.5328) > 1e-3 {
		t.Errorf("t is %g with %g degrees", between, freedom)
	}
}

func TestGateDecidesByTheInterval(t *testing.T) {
	t.Parallel()
	by := func(n int, shift, scatter float64) Sides {
		s := Sides{Old: Rounds{}, New: Rounds{}}
		for i := range n {
			s.Old[i] = 100 + float64(i%4)
			s.New[i] = s.Old[i] * (1 + shift + scatter*float64(i%5-2))
		}
		return s
	}
	zero := Sides{Old: Rounds{0: 0, 1: 0}, New: Rounds{0: 0, 1: 0}}
	for _, tt := range []struct {
		name   string
		sides  Sides
		margin float64
		want   Decision
		needs  bool
	}{
		{"interval above the margin is worse", by(20, 0.10, 0.001), 0.05, Regressed, false},
		{"interval within the margin is not worse", by(20, 0.01, 0.001), 0.05, Passed, false},
		{"gain is not worse", by(20, -0.20, 0.001), 0.05, Passed, false},
		{"interval across the margin is not decided", by(20, 0.06, 0.05), 0.05, NotDecided, true},
		{"too few rounds are not decided", by(5, 0.5, 0.001), 0.05, NotDecided, true},
		{"decrease is worse if less is worse", by(20, -0.10, 0.001), -0.05, Regressed, false},
		{"increase is not worse if less is worse", by(20, 0.10, 0.001), -0.05, Passed, false},
		{"shift at the margin is not decided by more rounds", by(20, 0.05, 0.02), 0.05, NotDecided, false},
		{"zero on both sides is not worse", zero, 0.05, Passed, false},
		{"side without values is not decided", Sides{Old: by(20, 0, 0).Old}, 0.05, NotDecided, true},
	} {
		g := GateAll([]Sides{tt.sides}, []float64{tt.margin}, Holm)[0]
		if g.Decision != tt.want || (g.Needs > 0) != tt.needs || g.Why == "" {
			t.Errorf("%s: got %+v", tt.name, g)
		}
	}
}

func TestMultipleComparisonsNeedStrongerEvidence(t *testing.T) {
	t.Parallel()
	s := Sides{Old: Rounds{}, New: Rounds{}}
	for i := range 7 {
		s.Old[i], s.New[i] = 100, 120+float64(i)
	}
	alone := GateAll([]Sides{s}, []float64{0.05}, Holm)[0]
	many, margins := make([]Sides, 10), make([]float64, 10)
	for i := range many {
		many[i], margins[i] = s, 0.05
		if i > 0 {
			many[i].New = s.Old
		}
	}
	if among := GateAll(many, margins, Holm)[0]; alone.Decision != Regressed || among.Decision != NotDecided {
		t.Errorf("one comparison: %s, one of ten: %s", alone.Why, among.Why)
	}
}

func TestRatiosAreWithinAStratum(t *testing.T) {
	t.Parallel()
	four, twice := []float64{1, 2, 3, 4}, []float64{2, 4, 6, 8}
	one := compare(Rounds{0: 1, 1: 2, 2: 3, 3: 4}, Rounds{4: 2, 5: 4, 6: 6, 7: 8})
	for name, c := range map[string]struct {
		strata []Samples
		n      int
		value  float64
		lo, hi float64 // 0 for no interval
	}{
		"one stratum is compared as two samples":                {[]Samples{{four, twice}}, 4, 1 + one.Shift, 1 + one.Lo, 1 + one.Hi},
		"strata with one side are ignored":                      {[]Samples{{four, twice}, {nil, []float64{900, 900}}, {[]float64{900}, nil}}, 4, 1 + one.Shift, 1 + one.Lo, 1 + one.Hi},
		"different strata":                                      {[]Samples{{[]float64{1, 1, 1, 1}, []float64{3, 3, 3, 3}}, {[]float64{70, 70, 70, 70}, []float64{210, 210, 210, 210}}}, 8, 3, 3, 3},
		"three and three values have no interval":               {[]Samples{{[]float64{1, 1, 1}, []float64{2, 2, 2}}}, 3, 2, 0, 0},
		"two strata of three and three values have an interval": {[]Samples{{[]float64{1, 1, 1}, []float64{2, 2, 2}}, {[]float64{5, 5, 5}, []float64{10, 10, 10}}}, 6, 2, 2, 2},
		"no strata":             {nil, 0, 0, 0, 0},
		"zero has no logarithm": {[]Samples{{[]float64{0, 1}, []float64{2, 2}}}, 0, 0, 0, 0},
		"NaN":                   {[]Samples{{[]float64{math.NaN()}, []float64{2}}}, 0, 0, 0, 0},
	} {
		r := RatioWithin(c.strata, 1-Alpha)
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
		if r.N != c.n || !near(r.Value, c.value) || !near(r.Lo, c.lo) || !near(r.Hi, c.hi) || r.Known != (c.lo > 0) {
			t.Errorf("%s: %+v, want %+v", name, r, c)
		}
	}
}

func TestIntervalsOfRatiosWithinStrataContainTheTruth(t *testing.T) {
	t.Parallel()
	for name, sizes := range map[string][][2]int{
		"alike": {{4, 4}, {4, 4}, {4, 4}}, "unlike": {{4, 2}, {4, 3}, {4, 60}}, "one": {{8, 16}},
	} {
		const runs = 1500
		random := rand.New(rand.NewPCG(1, 1))
		held := 0
		for range runs {
			var strata []Samples
			for _, size := range sizes {
				level := math.Exp(random.NormFloat64())
				draw := func(n int, times float64) (out []float64) {
					for range n {
						out = append(out, level*times*math.Exp(0.3*random.NormFloat64()))
					}
					return out
				}
				strata = append(strata, Samples{draw(size[0], 1), draw(size[1], 1.5)})
			}
			if r := RatioWithin(strata, 0.95); r.Known && r.Lo <= 1.5 && 1.5 <= r.Hi {
				held++
			}
		}
		if share := float64(held) / runs; share < 0.93 || share > 0.985 {
			t.Errorf("%s: %.1f %% of the intervals contain the truth", name, 100*share)
		}
	}
}

func TestCloseRunsDoNotShowEqualRuns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		effects, own []float64
		aroundZero   bool
		want         float64
	}{
		{"spread above the runs' own variance", []float64{-0.3, 0.3}, []float64{0.01, 0.01}, false, 18 * 18 / ((2.0 + 18) * 100)},
		{"spread equal to the runs' own variance", []float64{-0.1, 0.1}, []float64{0.02, 0.02}, false, 1 / (3.0 * 50)},
		{"spread below the runs' own variance", []float64{-0.01, 0.01}, []float64{0.01, 0.01}, false, 0.02 * 0.02 / (2.02 * 100)},
		{"spread around zero", []float64{0.3, 0.3}, []float64{0.01, 0.01}, true, 18 * 18 / ((4.0 + 18) * 200)},
		{"zero own variance of a run", []float64{0.3, 0.1}, []float64{0.01, 0}, true, 0.05},
		{"equal runs have no spread", []float64{0.3, 0.3}, []float64{0.01, 0.01}, false, 0},
		{"single run has no spread", []float64{0.3}, []float64{0.01}, false, 0},
		{"no runs", nil, nil, true, 0},
	} {
		if got := BetweenRuns(tt.effects, tt.own, tt.aroundZero); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", tt.name, got, tt.want)
		}
	}
	r := seeded(3) // the mean of three runs that differ by twice their internal scatter is near the truth
	sum := 0.0
	for range 2000 {
		var effects []float64
		for range 3 {
			effects = append(effects, 0.02*r.NormFloat64()+0.01*r.NormFloat64())
		}
		sum += BetweenRuns(effects, []float64{0.0001, 0.0001, 0.0001}, false) / 2000
	}
	if sum < 0.0003 || sum > 0.0005 {
		t.Errorf("mean of many is %g, want about 0.0004", sum)
	}
}
