package figure

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/tare-bench/tare/internal/core/stat"
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
		"has its rounds in order, and one estimate": {whole, `{"experiment":"x","quantity":"latency","unit":"ns","better":"less","labels":{"target":"runc"},` +
			`"rounds":[{"round":0,"value":1},{"round":1,"value":2},{"round":2,"value":3}],"estimate":{"n":3,"value":2,"bounded":false}}`},
		"has a bound of 0 where that is one":   {bound, `{"experiment":"x","quantity":"latency","unit":"ns","better":"less","labels":{"target":"runc"},"estimate":{"n":9,"value":1,"lo":0,"hi":2,"bounded":true}}`},
		"has nothing where there is no number": {none, `{"experiment":"x","quantity":"latency","unit":"ns","better":"less","labels":{"target":"runc"}}`},
	} {
		text, err := json.Marshal(tt.f)
		if err != nil || string(text) != tt.want {
			t.Errorf("%s: got\n%s, %v\nwant\n%s", name, text, err, tt.want)
		}
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
	if !v.Different() || v.Baseline != "a" || !v.Shift.Bounded || math.Abs(v.Shift.Value-1) > 1e-9 || math.Abs(v.Ratio().Value-2) > 1e-9 || v.P != v.Adjusted {
		t.Errorf("twice as much is %+v", v)
	}
	if none.Versus.Different() || none.Versus != nil || noBase.Versus != nil || noBase.Versus.Ratio().Known() {
		t.Errorf("what has no rounds is %+v, %+v", none.Versus, noBase.Versus)
	}
}

func TestLabelsKeepTheirOrderAndLeaveOutWhatHasNoValue(t *testing.T) {
	t.Parallel()
	l := Of("target", "runc", "op", "", "lanes", "1").With("lanes", "2").With("stamp", "first")
	if l.String() != "target=runc lanes=2 stamp=first" || l.Get("op") != "" {
		t.Errorf("got %s", l)
	}
}
