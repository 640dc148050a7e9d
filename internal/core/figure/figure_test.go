package figure

import (
	"math"
	"testing"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestJSONOfAFigure(t *testing.T) {
	t.Parallel()
	values := stat.Rounds{2: 3, 0: 1, 1: 2}
	whole := Figure{Experiment: "x", Quantity: "latency", Unit: Nanoseconds, Better: Less, Labels: Of("target", "runc", "op", ""), Rounds: ByRound(values), Estimate: Median(values)}
	none := whole
	none.Rounds, none.Estimate = []Round{{0, math.NaN()}}, Estimate{N: 1, Value: math.NaN()}
	none.Versus = &Versus{P: math.NaN()}
	bound := whole
	bound.Rounds, bound.Estimate = nil, Estimate{N: 9, Value: 1, Lo: 0, Hi: 2, Bounded: true}
	for name, tt := range map[string]struct {
		f    Figure
		want string
	}{
		"rounds in order and an estimate": {whole, `{"experiment":"x","quantity":"latency","unit":"ns","better":"less","labels":{"target":"runc"},` +
			`"rounds":[{"round":0,"value":1},{"round":1,"value":2},{"round":2,"value":3}],"estimate":{"n":3,"value":2,"bounded":false}}`},
		"interval that begins at 0": {bound, `{"experiment":"x","quantity":"latency","unit":"ns","better":"less","labels":{"target":"runc"},"estimate":{"n":9,"value":1,"lo":0,"hi":2,"bounded":true}}`},
		"NaN is omitted":            {none, `{"experiment":"x","quantity":"latency","unit":"ns","better":"less","labels":{"target":"runc"}}`},
	} {
		check.Equal(t, name, string(must.JSON(t, tt.f)), tt.want)
	}
}

func TestComparingNeedsBothSides(t *testing.T) {
	t.Parallel()
	a, b := stat.Rounds{}, stat.Rounds{}
	for i := range 10 {
		a[i], b[i] = 100+float64(i), 200+2*float64(i)
	}
	fig := func(values stat.Rounds) *Figure { return &Figure{Rounds: ByRound(values)} }
	twice, none, noBase := fig(b), fig(nil), fig(b)
	Comparing{}.Compare("a", []Pair{{fig(a), twice}, {fig(a), none}, {fig(nil), noBase}})
	v := twice.Versus
	check.That(t, v.Different() && v.Baseline == "a" && v.Shift.Bounded && math.Abs(v.Shift.Value-1) <= 1e-9 &&
		math.Abs(v.Ratio().Value-2) <= 1e-9 && v.P == v.Adjusted, "twice the base: %+v", v)
	check.That(t, !none.Versus.Different() && none.Versus == nil && noBase.Versus == nil && !noBase.Versus.Ratio().Known(),
		"figures without rounds: %+v, %+v", none.Versus, noBase.Versus)
}

func TestLabelsKeepOrderAndOmitEmptyValues(t *testing.T) {
	t.Parallel()
	l := Of("target", "runc", "op", "", "lanes", "1").With("lanes", "2").With("stamp", "first")
	check.That(t, l.String() == "target=runc lanes=2 stamp=first" && l.Get("op") == "", "got %s", l)
}

func TestUpperBoundProvesOnlyOneDirection(t *testing.T) {
	t.Parallel()
	around := func(level float64, atMost bool) *Figure {
		values := stat.Rounds{}
		for i := range 12 {
			values[i] = level * (1 + 0.001*float64(i*7%5))
		}
		return &Figure{Rounds: ByRound(values), AtMost: atMost}
	}
	for name, tt := range map[string]struct {
		old, new float64
		bounds   [2]bool
		verdict  stat.Verdict // "" for no verdict
		bound    string
	}{
		"5 to 30, both known":      {5, 30, [2]bool{}, stat.Different, ""},
		"5 to 30 or less":          {5, 30, [2]bool{false, true}, stat.Undecided, "at most"},
		"50 to 30 or less":         {50, 30, [2]bool{false, true}, stat.Different, "at most"},
		"30 to 30 or less":         {30, 30, [2]bool{false, true}, stat.Undecided, "at most"},
		"30 or less to 50":         {30, 50, [2]bool{true, false}, stat.Different, "at least"},
		"30 or less to 5":          {30, 5, [2]bool{true, false}, stat.Undecided, "at least"},
		"30 or less to 50 or less": {30, 50, [2]bool{true, true}, "", ""},
		"30 to 30, both known":     {30, 30, [2]bool{}, stat.Same, ""},
	} {
		f := around(tt.new, tt.bounds[1])
		Comparing{}.Compare("old", []Pair{{around(tt.old, tt.bounds[0]), f}})
		v := f.Versus
		check.That(t, (v == nil) == (tt.verdict == "") && (v == nil || v.Verdict == tt.verdict && v.Bound == tt.bound), "%s: %+v", name, v)
	}
}

func TestZerosAreNotCompared(t *testing.T) {
	t.Parallel()
	zero, some := stat.Rounds{0: 0, 1: 0, 2: 0}, stat.Rounds{0: 0, 1: 1, 2: 0}
	got := Comparing{}.Versus("base", []stat.Sides{{Old: zero, New: zero}, {Old: zero, New: some}, {Old: some, New: zero}})
	check.That(t, got[0] == nil && got[1] != nil && got[2] != nil, "got %+v", got)
}

func TestSetIsFilteredByLabels(t *testing.T) {
	t.Parallel()
	c := Catalogue{Experiment: "x", Quantities: []Quantity{{Name: "latency", Unit: Nanoseconds, Better: Less}, {Name: "share", Unit: Ratio}}}
	var all Set
	for _, labels := range []Labels{Of("op", "run", "target", "a"), Of("op", "run", "target", "b"), Of("op", "rm", "target", "b")} {
		all = append(all, c.New("latency", Exactly(float64(len(all))), labels), c.New("share", Exactly(0.5), labels))
	}
	ops, cells := all.Parts("op"), all.Parts("op", "target")
	check.That(t, len(ops) == 2 && len(ops[0]) == 4 && len(cells) == 3 && cells[2].Get("op") == "rm", "got %v, %v", ops, cells)
	f := ops[0].Part("target", "b").Of("latency")
	check.That(t, f == &all[2] && f.Unit == Nanoseconds && f.Better == Less && f.Experiment == "x", "got %+v", f)
	check.That(t, !ops[1].Part("target", "a").Of("latency").Known() && !all.Of("latency", "op", "create").Known(), "a missing figure has a value")
	rows := all.Rows("op", []string{"a", "b"}, "b", func(cell Set) *Figure { return cell.Of("share") })
	check.That(t, rows.At == 1 && rows.Rows[1].Name == "rm" && !rows.Rows[1].Of[0].Known() && rows.Rows[1].Of[1] == &all[5], "got %+v", rows)
}
