package stat

import (
	"math"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
)

// nodes draws values around a level with the given relative scatter.
func nodes(n int, level, scatter float64) []float64 {
	return lognormal(seeded(uint64(n)), n, level, scatter)
}

// alike assigns one kind to all values.
func alike(n int) Kinds {
	k := Kinds{Of: make([]int, n), Members: [][]int{{}}}
	for i := range n {
		k.Members[0] = append(k.Members[0], i)
	}
	return k
}

func TestOutliersAreFound(t *testing.T) {
	t.Parallel()
	with := func(values []float64, others ...float64) []float64 { return append(values, others...) }
	constant := func(n int, v float64) (out []float64) {
		for range n {
			out = append(out, v)
		}
		return out
	}
	signed := make([]float64, 30)
	for i := range signed {
		signed[i] = float64(i%7 - 3)
	}
	for name, test := range map[string]struct {
		values []float64
		among  int
		places []int
	}{
		"no outlier among equal nodes":                      {nodes(1000, 100, 0.03), 30_000, nil},
		"one node at twice the value":                       {with(nodes(100, 100, 0.03), 200), 3000, []int{100}},
		"high and low outlier, furthest first":              {with(nodes(100, 100, 0.03), 150, 50), 3000, []int{101, 100}},
		"five outliers of a hundred do not mask each other": {with(nodes(95, 100, 0.03), 150, 150, 150, 150, 150), 3000, []int{95, 96, 97, 98, 99}},
		"value within the scatter is not an outlier":        {with(nodes(100, 100, 0.2), 140), 3000, nil},
		"4 % off is not an outlier despite low scatter":     {with(nodes(1000, 100, 0.001), 104), 1000, nil},
		"6 % off is an outlier with low scatter":            {with(nodes(1000, 100, 0.001), 106), 1000, []int{1000}},
		"outlier among equal values":                        {with(constant(50, 4096), 8192), 50, []int{50}},
		"outlier among zeros, which have no logarithm":      {with(constant(50, 0), 3), 50, []int{50}},
		"outlier among values with signs":                   {with(signed, -60), 30, []int{30}},
		"equal values have no outlier":                      {constant(50, 3), 50, nil},
		"too few values have no outlier":                    {with(constant(8, 3), 9), 9, nil},
		"NaN prevents outliers":                             {with(constant(50, 3), math.NaN(), 9), 50, nil},
	} {
		var places []int
		for _, o := range Outliers(test.values, alike(len(test.values)), test.among) {
			places = append(places, o.At)
		}
		check.Equal(t, name, places, test.places)
	}
	if o := Outliers(append(nodes(100, 100, 0.03), 200), alike(101), 0); math.Abs(o[0].Shift-1) > 0.02 || o[0].Score < 10 {
		t.Errorf("outlier at twice the value: %+v", o)
	}
}

func TestOutliersAreRelativeToTheirKind(t *testing.T) {
	t.Parallel()
	var values []float64
	kinds := Kinds{Members: make([][]int, 3)}
	add := func(kind int, all ...float64) {
		for _, v := range all {
			kinds.Of, kinds.Members[kind] = append(kinds.Of, kind), append(kinds.Members[kind], len(values))
			values = append(values, v)
		}
	}
	add(0, nodes(40, 100, 0.02)...)
	add(1, nodes(41, 300, 0.02)...)
	add(2, nodes(42, 300, 0.3)...) // a node with more noise
	add(0, 300)
	if o := Outliers(values, kinds, len(values)); len(o) != 1 || o[0].At != len(values)-1 {
		t.Errorf("want the value that is usual only for another kind: %+v", o)
	}
	kinds.Of[len(values)-1] = 1 // the only one of its kind, evaluated with the second kind
	if o := Outliers(values, kinds, len(values)); o != nil {
		t.Errorf("value is an outlier within the kind in which it is usual: %+v", o)
	}
}

func TestScatter(t *testing.T) {
	t.Parallel()
	if got := Scatter(nodes(2001, 100, 0.03)); math.Abs(got-1.96*0.03) > 0.004 {
		t.Errorf("%v", got)
	}
	for _, values := range [][]float64{nil, {0, 0, 1}} {
		if got := Scatter(values); !math.IsNaN(got) {
			t.Errorf("scatter of %v is %v", values, got)
		}
	}
}

// course draws a series around levels, with n values per level.
func course(seed uint64, noise float64, levels ...float64) (out []float64) {
	r := seeded(seed)
	for i := 0; i < len(levels); i += 2 {
		out = append(out, lognormal(r, int(levels[i+1]), levels[i], noise)...)
	}
	return out
}

func TestChangesOfLevelAreFound(t *testing.T) {
	t.Parallel()
	with := func(values []float64, at int, factor float64) []float64 {
		values[at] *= factor
		return values
	}
	for _, tt := range []struct {
		name   string
		values []float64
		at     []int
		shift  float64 // shift of the first series
	}{
		{"constant level has no change", course(1, 0.02, 100, 60), nil, 0},
		{"increase is found", course(2, 0.02, 100, 30, 110, 30), []int{30}, 0.1},
		{"decrease is found", course(3, 0.02, 100, 30, 90, 30), []int{30}, -0.1},
		{"up and down are two changes", course(4, 0.01, 100, 25, 106, 10, 100, 25), []int{25, 35}, 0.06},
		{"two increases are two changes", course(5, 0.01, 100, 20, 106, 20, 112, 20), []int{20, 40}, 0.06},
		{"outlier is not a change", with(course(6, 0.01, 100, 60), 40, 3), nil, 0},
		{"outliers do not hide a change", with(with(course(7, 0.01, 100, 30, 106, 30), 5, 3), 50, 0.2), []int{30}, 0.06},
		{"recent change is found", course(8, 0.01, 100, 55, 110, 5), []int{55}, 0.1},
		{"equal values have no change", slices.Repeat([]float64{7}, 40), nil, 0},
		{"change to negative values has no percentage", append(course(9, 0.01, 100, 20), slices.Repeat([]float64{-1, -2}, 10)...), []int{20}, math.NaN()},
		{"too few values have no change", []float64{1, 1, 1, 9, 9}, nil, 0},
		{"no values have no change", nil, nil, 0},
	} {
		got := Changes([][]float64{tt.values})[0].Changes
		var at []int
		for _, c := range got {
			at = append(at, c.At)
		}
		if !slices.Equal(at, tt.at) {
			t.Errorf("%s: changes at %v, want %v", tt.name, at, tt.at)
		} else if at != nil && (Finite(tt.shift) != Finite(got[0].Shift) || Finite(tt.shift) && !(got[0].Lo <= tt.shift && tt.shift <= got[0].Hi)) {
			t.Errorf("%s: %+v", tt.name, got[0])
		}
	}
}

func TestMoreSeriesRaiseTheThreshold(t *testing.T) {
	t.Parallel()
	step := course(11, 0.01, 100, 10, 110, 10)
	all := [][]float64{step}
	alone := Changes(all)[0]
	for i := range 200 {
		all = append(all, course(uint64(20+i), 0.01, 100, 20))
	}
	among := Changes(all)[0]
	if len(alone.Changes) != 1 || len(among.Changes) != 0 || !(alone.Finds < among.Finds) {
		t.Errorf("one series: %+v, one of 201: %+v", alone, among)
	}
}

// TestConstantSeriesDoesNotAffectTheOthers checks that the machine's drift is estimated
// only from series that vary.
func TestConstantSeriesDoesNotAffectTheOthers(t *testing.T) {
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
			t.Errorf("series %d: noise has a weight of %v", i, c.Widened)
		}
	}
}
