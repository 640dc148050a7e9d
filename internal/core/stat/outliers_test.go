package stat

import (
	"math"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
)

// nodes are values around a level that scatter by a share of it.
func nodes(n int, level, scatter float64) []float64 {
	return lognormal(seeded(uint64(n)), n, level, scatter)
}

// alike are values of one kind.
func alike(n int) Kinds {
	k := Kinds{Of: make([]int, n), Members: [][]int{{}}}
	for i := range n {
		k.Members[0] = append(k.Members[0], i)
	}
	return k
}

func TestOutliersAreThoseThatLieApart(t *testing.T) {
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
		"nothing of nodes that are alike":                   {nodes(1000, 100, 0.03), 30_000, nil},
		"one that takes twice as long":                      {with(nodes(100, 100, 0.03), 200), 3000, []int{100}},
		"and one that takes half, the furthest first":       {with(nodes(100, 100, 0.03), 150, 50), 3000, []int{101, 100}},
		"five of a hundred do not hide each other":          {with(nodes(95, 100, 0.03), 150, 150, 150, 150, 150), 3000, []int{95, 96, 97, 98, 99}},
		"not what is within the scatter":                    {with(nodes(100, 100, 0.2), 140), 3000, nil},
		"nothing that is not 5 % off, however plain it is":  {with(nodes(1000, 100, 0.001), 104), 1000, nil},
		"one that is 6 % off then":                          {with(nodes(1000, 100, 0.001), 106), 1000, []int{1000}},
		"of equal values the one that is not":               {with(constant(50, 4096), 8192), 50, []int{50}},
		"of nothing but zeros too, which have no logarithm": {with(constant(50, 0), 3), 50, []int{50}},
		"of changes that may be negative":                   {with(signed, -60), 30, []int{30}},
		"not of values that are all equal":                  {constant(50, 3), 50, nil},
		"not of too few":                                    {with(constant(8, 3), 9), 9, nil},
		"not where one is no number":                        {with(constant(50, 3), math.NaN(), 9), 50, nil},
	} {
		var places []int
		for _, o := range Outliers(test.values, alike(len(test.values)), test.among) {
			places = append(places, o.At)
		}
		check.Equal(t, name, places, test.places)
	}
	if o := Outliers(append(nodes(100, 100, 0.03), 200), alike(101), 0); math.Abs(o[0].Shift-1) > 0.02 || o[0].Score < 10 {
		t.Errorf("twice as much is %+v", o)
	}
}

func TestAnOutlierIsOneOfItsKind(t *testing.T) {
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
	add(2, nodes(42, 300, 0.3)...) // which scatters more by itself
	add(0, 300)
	if o := Outliers(values, kinds, len(values)); len(o) != 1 || o[0].At != len(values)-1 {
		t.Errorf("what is usual for others is no outlier: %+v", o)
	}
	kinds.Of[len(values)-1] = 1 // one of its own, looked at with the second
	if o := Outliers(values, kinds, len(values)); o != nil {
		t.Errorf("what is usual where it is looked at is an outlier: %+v", o)
	}
}

func TestScatterIsTheRangeOfMostAsAShare(t *testing.T) {
	t.Parallel()
	if got := Scatter(nodes(2001, 100, 0.03)); math.Abs(got-1.96*0.03) > 0.004 {
		t.Errorf("%v", got)
	}
	for _, values := range [][]float64{nil, {0, 0, 1}} {
		if got := Scatter(values); !math.IsNaN(got) {
			t.Errorf("%v has %v", values, got)
		}
	}
}
