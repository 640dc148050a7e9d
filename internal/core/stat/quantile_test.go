package stat

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
)

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	nan := math.NaN()
	for _, tt := range []struct {
		name   string
		sorted []float64
		q      float64
		want   float64
	}{
		{"p50 of a hundred is the median", hundred, 0.50, 50.5},
		{"p90 of a hundred is the ninetieth", hundred, 0.90, 90},
		{"p99 of a hundred is the ninety-ninth", hundred, 0.99, 99},
		{"rounding of q does not raise the rank", hundred, 0.07, 7},
		{"q = 1 is the largest", hundred, 1, 100},
		{"q > 1 is the largest", hundred, 7, 100},
		{"q = 0 is the smallest", hundred, 0, 1},
		{"q < 0 is the smallest", hundred, -1, 1},
		{"p99 of ten is the largest", hundred[:10], 0.99, 10},
		{"p50 of four is the median", hundred[:4], 0.5, 2.5},
		{"every quantile of one value is that value", hundred[:1], 0.9, 1},
		{"no values have no quantile", nil, 0.5, nan},
		{"NaN has no quantile", hundred, nan, nan},
	} {
		if got := Quantile(tt.sorted, tt.q); !same(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestQuantilesKeepTheRequestedOrder(t *testing.T) {
	got := Quantiles([]float64{3, 1, 2}, 1, 0, 0.5)
	if got[0] != 3 || got[1] != 1 || got[2] != 2 {
		t.Errorf("got %v", got)
	}
}

func TestQuantilesOfNonFiniteValuesAreNaN(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := Quantiles([]float64{1, bad, 2}, 0.5, 1); !math.IsNaN(got[0]) || !math.IsNaN(got[1]) {
			t.Errorf("with %v: got %v", bad, got)
		}
	}
}

func TestParallelism(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name      string
		latencies []float64
		makespan  float64
		want      float64
	}{
		{"sequential operations have 1", []float64{10, 10, 10}, 30, 1},
		{"fully parallel operations have their number", []float64{30, 30, 30}, 30, 3},
		{"partly parallel operations are between", []float64{10, 20, 30}, 30, 2},
		{"empty batch has 0", nil, 30, 0},
		{"zero makespan has none", []float64{1}, 0, nan},
		{"negative makespan has none", []float64{1}, -1, nan},
		{"infinite makespan has none", []float64{1}, math.Inf(1), nan},
		{"negative latency", []float64{-1, 2}, 1, nan},
		{"NaN latency", []float64{nan, 2}, 1, nan},
	} {
		if got := Parallelism(tt.latencies, tt.makespan); !same(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestMinRounds(t *testing.T) {
	for _, tt := range []struct {
		name       string
		confidence float64
		want       int
	}{
		{"95% needs six", 0.95, 6},
		{"99% needs eight", 0.99, 8},
		{"90% needs five", 0.90, 5},
		{"exact confidence of six rounds needs six", 0.96875, 6},
		{"zero confidence needs two", 0, 2},
		{"full confidence has no number of rounds", 1, math.MaxInt},
		{"NaN", math.NaN(), math.MaxInt},
		{"largest confidence below one has a number", math.Nextafter(1, 0), 54},
	} {
		check.Equal(t, tt.name, MinRounds(tt.confidence), tt.want)
	}
}

func TestIntervalIsKnownFromMinRounds(t *testing.T) {
	for _, confidence := range []float64{0.5, 0.8, 0.9, 0.95, 0.99, 0.999} {
		n := MinRounds(confidence)
		for _, size := range []int{n - 1, n} {
			if got := Summarize(lognormal(seeded(1), size, 1, 0.1), confidence).Known; got != (size >= n) {
				t.Errorf("confidence %v, n=%d: Known is %v", confidence, size, got)
			}
		}
	}
}

// Critical values of Wilcoxon's table, two-sided at 0.05 (Conover, Practical
// Nonparametric Statistics, 3rd ed. 1999, table A12). Each is one less than the rank.
func TestWalshRankMatchesTables(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 0, 5: 0, 6: 1, 7: 3, 8: 4, 10: 9, 12: 14, 15: 26, 20: 53, 25: 90, 30: 138, 50: 435} {
		check.Equal(t, n, walshRank(n, 0.05), want)
	}
	if exact, close := walshRank(maxExact, 0.05), walshRank(maxExact+1, 0.05); close <= exact || close > exact+30 {
		t.Errorf("the approximation deviates from the exact ranks: %d, %d", exact, close)
	}
}

func TestPointsNeededIsTheMinimumForADetectableChange(t *testing.T) {
	t.Parallel()
	for _, series := range []int{1, 2, 36, 100} {
		need := PointsNeeded(series)
		t.Logf("%d series: %d points", series, need)
		for n, want := range map[int]int{need - 1: 0, need: 1} {
			all := make([][]float64, series)
			for i := range all {
				for k := range n {
					v := 1 + 0.001*float64(k*7%5)
					if i == 0 && k >= n/2 {
						v *= 100
					}
					all[i] = append(all[i], v)
				}
			}
			if got := len(Changes(all)[0].Changes); got != want {
				t.Errorf("%d points of %d series: %d changes, want %d", n, series, got, want)
			}
		}
	}
}

func TestRankOfPairsMatchesSorting(t *testing.T) {
	t.Parallel()
	r := seeded(11)
	for n := range 40 {
		a, b := make([]float64, n), make([]float64, n/2+n%3)
		for _, values := range [][]float64{a, b} {
			for i := range values {
				if values[i] = r.NormFloat64(); n%4 == 0 {
					values[i] = math.Round(values[i]) // creates ties and zeros
				}
			}
		}
		var means, apart []float64
		for i := range a {
			for _, v := range a[i:] {
				means = append(means, a[i]/2+v/2)
			}
			for _, v := range b {
				apart = append(apart, v-a[i])
			}
		}
		for what, c := range map[string]struct {
			all  []float64
			many *many
		}{"walsh": {means, walsh(a)}, "shifts": {apart, shifts(a, b)}} {
			slices.Sort(c.all)
			if got, want := c.many.median(), median(c.all); c.many.n != len(c.all) || got != want && !math.IsNaN(want) {
				t.Errorf("%s of %d: %d with the median %g, want %d with %g", what, n, c.many.n, got, len(c.all), want)
			}
			for rank, want := range c.all {
				if got := c.many.at(rank); got != want {
					t.Errorf("%s of %d: %g has rank %d, want %g", what, n, got, rank, want)
				}
			}
		}
	}
}

// TestPairsOfManyRoundsAreNotKeptInMemory simulates hours of short operations, whose
// pairs would take gigabytes. It measures the allocations of the whole process, so it is
// not parallel.
func TestPairsOfManyRoundsAreNotKeptInMemory(t *testing.T) {
	const rounds, most = 5000, 20 << 20 // all pairs would take 100 or 200 MB
	r := seeded(5)
	old, new, later := Rounds{}, Rounds{}, Rounds{}
	for i := range rounds {
		old[i], new[i], later[rounds+i] = 1+r.Float64(), 1+r.Float64(), 1+r.Float64()
	}
	for name, other := range map[string]Rounds{"same rounds": new, "other rounds": later} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		compare(old, other)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s: the comparison allocated %d bytes", name, took)
		}
	}
}
