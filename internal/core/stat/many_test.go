package stat

import (
	"math"
	"runtime"
	"slices"
	"testing"
)

func TestAPairsNumberOfARankIsThatOfAllOfThemSorted(t *testing.T) {
	t.Parallel()
	r := seeded(11)
	for n := range 40 {
		a, b := make([]float64, n), make([]float64, n/2+n%3)
		for _, values := range [][]float64{a, b} {
			for i := range values {
				if values[i] = r.NormFloat64(); n%4 == 0 {
					values[i] = math.Round(values[i]) // ties, and zeros
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

// TestOfManyRoundsNoMoreIsHeldThanThereAre is about hours of short operations, of which all
// pairs were gigabytes. It looks at what the whole process allocates, and is not parallel.
func TestOfManyRoundsNoMoreIsHeldThanThereAre(t *testing.T) {
	const rounds, most = 5000, 20 << 20 // all pairs would be 100 MB, or 200
	r := seeded(5)
	old, new, later := Rounds{}, Rounds{}, Rounds{}
	for i := range rounds {
		old[i], new[i], later[rounds+i] = 1+r.Float64(), 1+r.Float64(), 1+r.Float64()
	}
	for name, other := range map[string]Rounds{"of the same rounds": new, "of others": later} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		compare(old, other)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s: to compare them took %d bytes", name, took)
		}
	}
}
