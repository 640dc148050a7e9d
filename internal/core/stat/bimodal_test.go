package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestUnimodalSamplesAreRarelyCalledBimodal(t *testing.T) {
	draws := []struct {
		name string
		draw func(r *rand.Rand) float64
	}{
		{"lognormal, sigma 0.3", func(r *rand.Rand) float64 { return math.Exp(0.3 * r.NormFloat64()) }},
		{"lognormal, sigma 1", func(r *rand.Rand) float64 { return math.Exp(r.NormFloat64()) }},
		{"exponential over a floor", func(r *rand.Rand) float64 { return 1 + r.ExpFloat64() }},
		{"normal", func(r *rand.Rand) float64 { return 100 + r.NormFloat64()*10 }},
		{"uniform, the worst case", func(r *rand.Rand) float64 { return 1 + r.Float64() }},
		{"normal with one straggler in twenty", func(r *rand.Rand) float64 {
			if r.Float64() < 0.05 {
				return 300 + r.NormFloat64()*10
			}
			return 100 + r.NormFloat64()*10
		}},
	}
	for _, d := range draws {
		for _, n := range []int{10, 20, 40, 100} {
			r := seeded(uint64(n))
			found := 0
			for range simulations {
				found += count(Bimodal(sample(r, n, d.draw), 1).Bimodal)
			}
			t.Logf("%s, n=%d: %.2f%% called bimodal", d.name, n, share(found))
			if share(found) >= 2 {
				t.Errorf("%s, n=%d: %.2f%% called bimodal", d.name, n, share(found))
			}
		}
	}
}

func TestTwoGroupsAreFound(t *testing.T) {
	for _, tt := range []struct {
		name  string
		n     int
		upper float64 // share of the upper mode
	}{
		{"twenty values, half and half", 20, 0.5},
		{"ten values, half and half", 10, 0.5},
		{"fifty values, one in three", 50, 1.0 / 3},
	} {
		r := seeded(uint64(tt.n))
		found := 0
		for range simulations {
			m := Bimodal(sample(r, tt.n, func(r *rand.Rand) float64 {
				if r.Float64() < tt.upper {
					return 20 + 0.5*r.NormFloat64()
				}
				return 10 + 0.5*r.NormFloat64()
			}), 1)
			found += count(m.Bimodal && math.Abs(m.Low-10) < 1 && math.Abs(m.High-20) < 1)
		}
		t.Logf("%s: found in %.2f%%", tt.name, share(found))
		if tt.n >= 20 && share(found) < 90 {
			t.Errorf("%s: found in only %.2f%%", tt.name, share(found))
		}
	}
}

func TestRoundedTimesAreUnimodal(t *testing.T) {
	t.Parallel()
	for _, tick := range []float64{1, 2, 5, 10} {
		r := seeded(uint64(tick))
		one, two := 0, 0
		for range simulations {
			values := lognormal(r, 50, 100, 0.05)
			apart := slices.Clone(values)
			for i := range values {
				values[i] = tick * math.Round(values[i]/tick)
				apart[i] = tick * math.Round((apart[i]+50*float64(i%2))/tick)
			}
			one += count(!Bimodal(values, 1).Bimodal)
			two += count(Bimodal(apart, 1).Bimodal)
		}
		if share(one) < 99 || share(two) < 99 {
			t.Errorf("rounded to %g: %.1f %% of unimodal and %.1f %% of bimodal samples are classified correctly", tick, share(one), share(two))
		}
	}
}

func TestBimodal(t *testing.T) {
	heaps := func(n int, low, high, width float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = low + width*float64(i/2)/float64(n)
			if i%2 == 1 {
				out[i] += high - low
			}
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		values []float64
		want   bool
	}{
		{"distant modes are two", heaps(20, 10, 20, 1), true},
		{"modes 2% apart are not reported", heaps(20, 100, 102, 0.1), false},
		{"modes on both sides of zero are two", heaps(20, -10, 10, 1), true},
		{"mode at zero", heaps(20, 0, 10, 0.1), true},
		{"adjacent clock ticks are one mode", heaps(20, 0, 10, 0), false},
		{"nine values are too few", heaps(9, 10, 20, 1), false},
		{"equal values are one mode", make([]float64, 50), false},
		{"no values have no mode", nil, false},
		{"NaN and infinity are skipped", append(heaps(20, 10, 20, 1), math.NaN(), math.Inf(-1)), true},
	} {
		got := Bimodal(tt.values, 1)
		if got.Bimodal != tt.want || (got.High != 0) != tt.want {
			t.Errorf("%s: got %+v", tt.name, got)
		}
		if tt.want && got.LowN != 10 {
			t.Errorf("%s: %d of 20 in the lower mode, want 10", tt.name, got.LowN)
		}
	}
}

// The expected dips are those of the R package diptest; dip also agreed with
// it on 12 800 random samples of 4 to 400 distinct values.
func TestDip(t *testing.T) {
	for _, tt := range []struct {
		name   string
		sorted []float64
		want   float64
	}{
		{"two modes without width have the largest dip", []float64{0, 0, 1, 1}, 0.25},
		{"tie at the lower end", []float64{2, 2, 3, 4}, 0.125},
		{"tie in the middle", []float64{3, 4, 4, 5}, 0.125},
		{"distant tie", []float64{0, 2, 5, 5}, 0.15},
		{"equal values have no dip", []float64{1, 1, 1}, 0},
		{"one value has no dip", []float64{1}, 0},
		{"no values have no dip", nil, 0},
		{"evenly spread values have the smallest dip", []float64{1, 2, 3, 4, 5}, 0.1},
	} {
		if got := dip(tt.sorted); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestDipIsInvariantToScaleAndReflection(t *testing.T) {
	for seed := range uint64(200) {
		r := seeded(seed)
		values := slices.Sorted(slices.Values(lognormal(r, 4+int(seed%40), 1, 0.5)))
		scaled, mirrored := make([]float64, len(values)), make([]float64, len(values))
		for i, v := range values {
			scaled[i] = 1e9*v + 7
			mirrored[len(values)-1-i] = -v
		}
		if d := dip(values); math.Abs(d-dip(scaled)) > 1e-6 || math.Abs(d-dip(mirrored)) > 1e-9 {
			t.Fatalf("seed %d: %v, scaled %v, mirrored %v", seed, d, dip(scaled), dip(mirrored))
		}
	}
}

func sample(r *rand.Rand, n int, draw func(*rand.Rand) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = draw(r)
	}
	return out
}
