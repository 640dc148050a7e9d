package stat

import (
	"math"
	"testing"
)

func TestDrift(t *testing.T) {
	step := func(n int, from, to float64) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = from + 0.01*float64(i%5)
			if i >= n/2 {
				values[i] += to - from
			}
		}
		return values
	}
	for _, tt := range []struct {
		name   string
		values []float64
		ratio  float64
		want   bool
	}{
		{"a step up is a drift", step(10, 100, 110), 1.1, true},
		{"a step down is a drift", step(10, 110, 100), 1 / 1.1, true},
		{"a significant shift of 1% is not worth saying", step(40, 100, 101), 1.01, false},
		{"nine values are too few, however clear", step(9, 100, 200), 2, false},
		{"equal values do not drift", make([]float64, 20), math.NaN(), false},
		{"no values do not drift", nil, math.NaN(), false},
		{"one value does not drift", []float64{1}, math.NaN(), false},
		{"from a negative half there is no ratio", step(20, -5, 5), math.NaN(), false},
		{"what is no number is passed over", append(step(10, 100, 110), math.NaN(), math.Inf(1)), 1.1, true},
	} {
		got := Drift(tt.values)
		if got.Drifted != tt.want || math.IsNaN(got.Ratio) != math.IsNaN(tt.ratio) || math.Abs(got.Ratio-tt.ratio) > 0.001 {
			t.Errorf("%s: got %+v", tt.name, got)
		}
	}
}

func TestSteadyRunsAreRarelyCalledDrifting(t *testing.T) {
	for _, n := range []int{10, 20, 50} {
		r := seeded(uint64(n))
		drifted := 0
		for range simulations {
			drifted += count(Drift(lognormal(r, n, 100, 0.3)).Drifted)
		}
		t.Logf("n=%d: %.2f%% false findings", n, share(drifted))
		if share(drifted) > 1.5 { // 1 % and two standard errors
			t.Errorf("n=%d: %.2f%% false findings", n, share(drifted))
		}
	}
}

func TestAMachineThatSlowsIsFound(t *testing.T) {
	// Ten rounds must part completely to reach p < 0.01.
	for n, least := range map[int]float64{10: 60, 20: 99} {
		r := seeded(uint64(n))
		drifted := 0
		for range simulations {
			drifted += count(Drift(values(run(r, slowing(r, n), 100, 0.03), n)).Drifted)
		}
		t.Logf("n=%d: a slowing by 30%% under noise of 3%% is found in %.2f%%", n, share(drifted))
		if share(drifted) < least {
			t.Errorf("n=%d: found in only %.2f%%", n, share(drifted))
		}
	}
}

func values(r Rounds, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = r[i]
	}
	return out
}

func TestAShortWarmupIsFound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		factor float64
		rounds int // that are slow
		least  float64
		most   float64
	}{
		{"a first round like the others is rarely called unlike", 1, 1, 0, 2},
		{"1.5 times as long under a noise of 10 %", 1.5, 1, 60, 100},
		{"twice as long", 2, 1, 98, 100},
		{"three rounds of three times as long", 3, 3, 98, 100},
		{"half as long", 0.5, 1, 98, 100},
	} {
		r := seeded(11)
		found := 0
		for range simulations {
			values := lognormal(r, 20, 100, 0.1)
			for i := range tt.rounds {
				values[i] *= tt.factor
			}
			found += count(First(values).Differs)
		}
		if s := share(found); s < tt.least || s > tt.most {
			t.Errorf("%s: found in %.1f %%", tt.name, s)
		}
	}
}

func TestFirst(t *testing.T) {
	t.Parallel()
	values := func(first float64, n int, others ...float64) []float64 {
		out := []float64{first}
		for i := range n - 1 {
			out = append(out, others[i%len(others)])
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		values []float64
		want   bool
	}{
		{"twice the others is unlike", values(200, 10, 100, 101, 102), true},
		{"4 % is not worth saying", values(104, 20, 100, 100.1, 100.2), false},
		{"one step of what was rounded is none", values(6, 20, 5, 5, 5), true},
		{"one step beside scatter of steps is none", values(6, 20, 5, 5, 4, 6, 5), false},
		{"nine values are too few", values(200, 9, 100, 101), false},
		{"values that are not positive have no ratio", values(200, 10, -1, 0), false},
		{"none", nil, false},
	} {
		if got := First(tt.values); got.Differs != tt.want {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}
