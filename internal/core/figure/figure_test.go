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
	none.Versus = &Versus{Delta: math.Inf(1)}
	for name, tt := range map[string]struct {
		f    Figure
		want string
	}{
		"has its rounds in order, and one estimate": {whole, `{"experiment":"x","quantity":"latency","unit":"ns","better":"less","labels":{"target":"runc"},` +
			`"rounds":[{"round":0,"value":1},{"round":1,"value":2},{"round":2,"value":3}],"estimate":{"n":3,"value":2,"lo":0,"hi":0,"bounded":false}}`},
		"has nothing where there is no number": {none, `{"experiment":"x","quantity":"latency","unit":"ns","better":"less","labels":{"target":"runc"}}`},
	} {
		text, err := json.Marshal(tt.f)
		if err != nil || string(text) != tt.want {
			t.Errorf("%s: got\n%s, %v\nwant\n%s", name, text, err, tt.want)
		}
	}
}

func TestCompareNeedsBothSides(t *testing.T) {
	t.Parallel()
	a, b := stat.Rounds{}, stat.Rounds{}
	for i := range 10 {
		a[i], b[i] = 100+float64(i), 200+2*float64(i)
	}
	if v := Compare("a", a, b); v == nil || !v.Different || v.Delta != 1 || v.Baseline != "a" || !v.Paired.Bounded || v.Paired.Value != 1 {
		t.Errorf("twice as much is %+v", v)
	}
	for name, none := range map[string]stat.Rounds{"nothing": {}, "zeros": {0: 0, 1: 0}} {
		if v := Compare("a", none, b); v != nil {
			t.Errorf("compared with %s: %+v", name, v)
		}
	}
}

func TestLabelsKeepTheirOrderAndLeaveOutWhatHasNoValue(t *testing.T) {
	t.Parallel()
	l := Of("target", "runc", "op", "", "lanes", "1").With("lanes", "2").With("stamp", "first")
	if l.String() != "target=runc lanes=2 stamp=first" || l.Get("op") != "" {
		t.Errorf("got %s", l)
	}
}
