package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestRatiosAreOfValuesOfOneStratum(t *testing.T) {
	t.Parallel()
	four, twice := []float64{1, 2, 3, 4}, []float64{2, 4, 6, 8}
	one := compare(Rounds{0: 1, 1: 2, 2: 3, 3: 4}, Rounds{4: 2, 5: 4, 6: 6, 7: 8})
	for name, c := range map[string]struct {
		strata []Samples
		n      int
		value  float64
		lo, hi float64 // 0: no interval
	}{
		"of one as two samples are compared":     {[]Samples{{four, twice}}, 4, 1 + one.Shift, 1 + one.Lo, 1 + one.Hi},
		"not of those with one side":             {[]Samples{{four, twice}, {nil, []float64{900, 900}}, {[]float64{900}, nil}}, 4, 1 + one.Shift, 1 + one.Lo, 1 + one.Hi},
		"whatever tells the strata apart":        {[]Samples{{[]float64{1, 1, 1, 1}, []float64{3, 3, 3, 3}}, {[]float64{70, 70, 70, 70}, []float64{210, 210, 210, 210}}}, 8, 3, 3, 3},
		"of three and three without an interval": {[]Samples{{[]float64{1, 1, 1}, []float64{2, 2, 2}}}, 3, 2, 0, 0},
		"of twice three and three with one":      {[]Samples{{[]float64{1, 1, 1}, []float64{2, 2, 2}}, {[]float64{5, 5, 5}, []float64{10, 10, 10}}}, 6, 2, 2, 2},
		"of none":                                {nil, 0, 0, 0, 0},
		"none where a value has no logarithm":    {[]Samples{{[]float64{0, 1}, []float64{2, 2}}}, 0, 0, 0, 0},
		"none where a value is no number":        {[]Samples{{[]float64{math.NaN()}, []float64{2}}}, 0, 0, 0, 0},
	} {
		r := RatioWithin(c.strata, 1-Alpha)
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
		if r.N != c.n || !near(r.Value, c.value) || !near(r.Lo, c.lo) || !near(r.Hi, c.hi) || r.Known != (c.lo > 0) {
			t.Errorf("%s: %+v, want %+v", name, r, c)
		}
	}
}

func TestTheIntervalOfRatiosWithinStrataHoldsTheTruth(t *testing.T) {
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
			t.Errorf("%s: the truth is in %.1f %% of the intervals", name, 100*share)
		}
	}
}
