package stat

import (
	"math"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
)

func TestSummarize(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, tt := range []struct {
		name       string
		values     []float64
		confidence float64
		want       Summary
	}{
		{"six values are the fewest with a 95% interval, and it is their range",
			[]float64{6, 1, 5, 2, 4, 3}, 0.95, Summary{N: 6, Median: 3.5, Lo: 1, Hi: 6, Known: true}},
		{"ten values have the second and the ninth for an interval",
			[]float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 0.95, Summary{N: 10, Median: 5.5, Lo: 2, Hi: 9, Known: true}},
		{"five values are not enough for 95%", []float64{1, 2, 3, 4, 5}, 0.95, Summary{N: 5, Median: 3}},
		{"five values are enough for 90%", []float64{1, 2, 3, 4, 5}, 0.90, Summary{N: 5, Median: 3, Lo: 1, Hi: 5, Known: true}},
		{"one value is its own median and nothing is known of it", []float64{7}, 0.95, Summary{N: 1, Median: 7}},
		{"what is not a number is left out",
			[]float64{nan, 1, 2, inf, 3, 4, 5, 6, -inf}, 0.95, Summary{N: 6, Median: 3.5, Lo: 1, Hi: 6, Known: true}},
		{"no values have no median", nil, 0.95, Summary{Median: nan}},
		{"only what is not a number has no median", []float64{nan, inf}, 0.95, Summary{Median: nan}},
		{"certainty has no interval", []float64{1, 2, 3}, 1, Summary{N: 3, Median: 2}},
		{"a confidence that is not a number has no interval", []float64{1, 2, 3}, nan, Summary{N: 3, Median: 2}},
	} {
		got, want := Summarize(tt.values, tt.confidence), tt.want
		if got.N != want.N || got.Known != want.Known || !same(got.Median, want.Median) || got.Lo != want.Lo || got.Hi != want.Hi {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, want)
		}
	}
}

func TestNothingIsSortedInPlace(t *testing.T) {
	values := []float64{3, 1, 2, 9, 8, 7, 6, 5, 4, 10, 12, 11}
	before := slices.Clone(values)
	Summarize(values, 0.95)
	Trimmed(values)
	Quantiles(values, 0.5)
	Bimodal(values, 1)
	check.Equal(t, "values", values, before)
}

func TestPrecision(t *testing.T) {
	for _, tt := range []struct {
		name string
		s    Summary
		want float64
	}{
		{"the larger half counts", Summary{Median: 100, Lo: 98, Hi: 105, Known: true}, 0.05},
		{"an unknown interval is never precise", Summary{Median: 100, Lo: 100, Hi: 100}, math.Inf(1)},
		{"values that are all equal are exact, even at zero", Summary{Known: true}, 0},
		{"nothing is precise relative to zero", Summary{Lo: -1, Hi: 1, Known: true}, math.Inf(1)},
		{"a negative median has a positive precision", Summary{Median: -100, Lo: -110, Hi: -99, Known: true}, 0.1},
	} {
		if got := tt.s.Precision(); !near(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// The interval must hold the true median at least as often as it claims.
func TestIntervalCoversTheMedianAsOftenAsItSays(t *testing.T) {
	for _, n := range []int{6, 8, 10, 20, 40} {
		r := seeded(uint64(n))
		const runs = 4000
		held := 0
		for range runs {
			s := Summarize(lognormal(r, n, 1, 0.3), 0.95)
			if s.Lo <= 1 && 1 <= s.Hi {
				held++
			}
		}
		rate := float64(held) / runs
		t.Logf("n=%d: the 95%% interval held the median in %.1f%% of %d samples", n, 100*rate, runs)
		if rate < 0.94 { // three standard errors of 4000 draws below 0.95
			t.Errorf("n=%d: held in only %.3f", n, rate)
		}
	}
}

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func near(a, b float64) bool {
	return same(a, b) || math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b))
}

func TestIntervalsOfRoundsThatDependOnEachOtherAreWider(t *testing.T) {
	t.Parallel()
	const records, n = 500, 20
	for _, tt := range []struct {
		rho         float64
		holds       int // at least, of all records
		least, most float64
	}{
		{0, records * 95 / 100, 1, 1.25},
		{0.3, records * 92 / 100, 1.5, 2.5},
		{0.6, records * 92 / 100, 2.5, 3.5},
		{0.9, records * 80 / 100, 3.5, 4.3},
	} {
		r := seeded(6)
		holds, wide, stricter := 0, 0.0, 0
		for range records {
			values := remembering(tt.rho, 0.1)(r, n)
			s, strict := SummarizeRounds(values, 1-Alpha), SummarizeRounds(values, StopConfidence)
			holds, wide = holds+count(s.Lo <= 100 && 100 <= s.Hi), wide+s.Widened/records
			stricter += count(strict.Lo <= s.Lo && s.Hi <= strict.Hi && s.Lo > 0)
		}
		if holds < tt.holds || wide < tt.least || wide > tt.most || stricter != records {
			t.Errorf("autocorrelation %g: held in %d of %d, %.2f times as wide, stricter in %d", tt.rho, holds, records, wide, stricter)
		}
	}
}

func TestValuesThatMayBeBelowZeroAreWidenedToo(t *testing.T) {
	t.Parallel()
	var values []float64
	for i := range 20 {
		values = append(values, float64(i-10))
	}
	if plain, s := Summarize(values, 1-Alpha), SummarizeRounds(values, 1-Alpha); !s.Known || s.Widened < 2 || s.Lo > plain.Lo-5 || s.Hi < plain.Hi+5 {
		t.Errorf("%+v became %+v", plain, s)
	}
}
