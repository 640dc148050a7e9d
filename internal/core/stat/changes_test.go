package stat

import (
	"math"
	"slices"
	"testing"
)

// course draws a series around levels, each of so many values.
func course(seed uint64, noise float64, levels ...float64) (out []float64) {
	r := seeded(seed)
	for i := 0; i < len(levels); i += 2 {
		out = append(out, lognormal(r, int(levels[i+1]), levels[i], noise)...)
	}
	return out
}

func TestChangesOfLevelAreFoundWhereTheyAre(t *testing.T) {
	t.Parallel()
	with := func(values []float64, at int, factor float64) []float64 {
		values[at] *= factor
		return values
	}
	for _, tt := range []struct {
		name   string
		values []float64
		at     []int
		shift  float64 // of the first
	}{
		{"of one level there is none", course(1, 0.02, 100, 60), nil, 0},
		{"a step is found", course(2, 0.02, 100, 30, 110, 30), []int{30}, 0.1},
		{"of a gain, too", course(3, 0.02, 100, 30, 90, 30), []int{30}, -0.1},
		{"up and down again are two", course(4, 0.01, 100, 25, 106, 10, 100, 25), []int{25, 35}, 0.06},
		{"so are two up", course(5, 0.01, 100, 20, 106, 20, 112, 20), []int{20, 40}, 0.06},
		{"one run that is off is no change", with(course(6, 0.01, 100, 60), 40, 3), nil, 0},
		{"nor does it hide one", with(with(course(7, 0.01, 100, 30, 106, 30), 5, 3), 50, 0.2), []int{30}, 0.06},
		{"a change that lies few runs back is found", course(8, 0.01, 100, 55, 110, 5), []int{55}, 0.1},
		{"values that are all the same have none", slices.Repeat([]float64{7}, 40), nil, 0},
		{"values that are not above 0 have no share of each other", append(course(9, 0.01, 100, 20), slices.Repeat([]float64{-1, -2}, 10)...), []int{20}, math.NaN()},
		{"few have none", []float64{1, 1, 1, 9, 9}, nil, 0},
		{"none have none", nil, nil, 0},
	} {
		got := Changes([][]float64{tt.values})[0].Changes
		var at []int
		for _, c := range got {
			at = append(at, c.At)
		}
		if !slices.Equal(at, tt.at) {
			t.Errorf("%s: at %v, not at %v", tt.name, at, tt.at)
		} else if at != nil && (Finite(tt.shift) != Finite(got[0].Shift) || Finite(tt.shift) && !(got[0].Lo <= tt.shift && tt.shift <= got[0].Hi)) {
			t.Errorf("%s: %+v", tt.name, got[0])
		}
	}
}

func TestEverySeriesMakesAChangeHarderToShow(t *testing.T) {
	t.Parallel()
	step := course(11, 0.01, 100, 10, 110, 10)
	all := [][]float64{step}
	alone := Changes(all)[0]
	for i := range 200 {
		all = append(all, course(uint64(20+i), 0.01, 100, 20))
	}
	among := Changes(all)[0]
	if len(alone.Changes) != 1 || len(among.Changes) != 0 || !(alone.Finds < among.Finds) {
		t.Errorf("alone %+v, among 201 %+v", alone, among)
	}
}

// TestASeriesThatNeverMovesTellsNothingOfTheOthers: what a machine's drift counts for is
// read off the series that move.
func TestASeriesThatNeverMovesTellsNothingOfTheOthers(t *testing.T) {
	t.Parallel()
	var all [][]float64
	for i := range 9 {
		r, values, drift := seeded(uint64(40+i)), make([]float64, 40), 0.0
		for k := range values {
			drift = 0.9*drift + 0.02*r.NormFloat64()
			values[k] = 100 * math.Exp(drift)
		}
		all = append(all, values)
	}
	for i, c := range Changes(append(all, slices.Repeat([]float64{7}, 40))) {
		if !Finite(c.Widened) || i < len(all) && c.Widened <= 1 {
			t.Errorf("series %d: noise counts %v times", i, c.Widened)
		}
	}
}
