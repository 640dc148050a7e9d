package page

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
)

func TestAShiftThatContradictsTheMediansIsNoted(t *testing.T) {
	t.Parallel()
	of := func(value, shift float64) figure.Pair {
		f := &figure.Figure{Labels: figure.Of("target", "crun"), Unit: figure.Nanoseconds, Estimate: figure.Exactly(value), Versus: &figure.Versus{Shift: figure.Exactly(shift)}}
		return figure.Pair{Base: &figure.Figure{Unit: figure.Nanoseconds, Estimate: figure.Exactly(100)}, Figure: f}
	}
	for name, tt := range map[string]struct {
		pair figure.Pair
		want string
	}{
		"both more":                 {of(110, 0.05), ""},
		"both less":                 {of(90, -0.05), ""},
		"more, and a shift below":   {of(102, -0.06), "target=crun they point in opposite directions (-6.0 %, medians 100 ns and 102 ns)"},
		"less, and a shift above":   {of(98, 0.06), "opposite directions (+6.0 %"},
		"no shift at all":           {of(98, 0), ""},
		"a figure with no base":     {figure.Pair{Figure: of(1, 1).Figure}, ""},
		"a pair without its figure": {figure.Pair{Base: of(1, 1).Base}, ""},
	} {
		if got := Opposed([]figure.Pair{tt.pair}); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
