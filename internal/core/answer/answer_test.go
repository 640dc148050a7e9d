package answer

import (
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/record"
)

// took returns a time with a comparison: the shift, its interval and its verdict.
func took(ms, shift, lo, hi float64, v stat.Verdict) *figure.Figure {
	f := &figure.Figure{Unit: figure.Nanoseconds, Better: figure.Less, Estimate: figure.Estimate{N: 12, Value: ms * 1e6}}
	if v != "" {
		f.Versus = &figure.Versus{Verdict: v, Margin: 0.05, Shift: figure.Estimate{N: 12, Value: shift, Lo: lo, Hi: hi, Bounded: true}}
	}
	return f
}

func TestSentenceMatchesTheVerdict(t *testing.T) {
	t.Parallel()
	runc, unknown := Named{"runc", took(24.4, 0, 0, 0, "")}, Named{"youki", &figure.Figure{}}
	crun := Named{"crun", took(13.7, -0.44, -0.57, -0.34, stat.Different)}
	slow := Named{"docker/runc", took(294, 5.8, 5.1, 6.6, stat.Different)}
	open := Named{"kata", took(30, 0.2, -0.1, 0.5, stat.Undecided)}
	same := Named{"runc-new", took(24.5, 0.01, -0.02, 0.03, stat.Same)}
	busy := []record.Finding{{Code: finding.Pressure}, {Code: finding.Pressure}, {Code: finding.FewRounds}, {Code: "other"}}
	for _, c := range []struct{ claim, want, got string }{
		{"best first, targets without figures omitted", "crun 13.7 ms (0.56×), runc 24.4 ms (baseline), docker/runc 294 ms (6.8×)", Values(Known([]Named{slow, unknown, runc, crun}), "runc")},
		{"single target has no baseline", "runc 24.4 ms", Values([]Named{runc}, "runc")},
		{"no ratio without a verdict", "kata 30.0 ms (no difference shown)", Values([]Named{open}, "runc")},
		{"same within the margin", "runc-new 24.5 ms (the same within 5 %)", Values([]Named{same}, "runc")},
		{"faster of two targets is the subject", "crun is 1.8× as fast [1.5, 2.3]", Pair(crun, runc, "fast")},
		{"faster baseline is the subject", "runc is 6.8× as fast [6.1, 7.6]", Pair(slow, runc, "fast")},
		{"no comparison of two targets without a verdict", "no difference shown", Pair(open, runc, "fast")},
		{"each caveat is printed once", " (the machine was busy, too few rounds)", Spoiled(busy)},
		{"no caveats", "", Spoiled(nil)},
		{"failure with its reason", "kata: run failed, 3 of 3: exit status 1: no space left", Failed([]record.Finding{
			{Code: finding.Failed, Target: "runc", Op: "run", Lanes: 1, Message: "the first: another"},
			{Code: finding.Failed, Target: "kata", Op: "run", Lanes: 1, Message: "3 of 3 failed, warm-up included; the first: exit status 1: no space left"},
		}, "kata", "run", 1, &figure.Figure{Failed: 3, Total: 3})},
	} {
		check.Equal(t, c.claim, c.got, c.want)
	}
}
