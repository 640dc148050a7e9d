package compare

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/testing/must"
)

// bounded makes the figures of a run upper bounds.
func bounded(r *Run) {
	for i := range r.Figures {
		r.Figures[i].AtMost, r.Figures[i].Verdict = true, figure.AtMost
	}
}

func TestAnUpperBoundDecidesOnlyWhatItProves(t *testing.T) {
	t.Parallel()
	known := func(*Run) {}
	for name, tt := range map[string]struct {
		old, new         float64
		ofOld, ofNew     func(*Run)
		verdict          stat.Verdict // "": not compared
		latency, request stat.Decision
		says             []string
	}{
		"5 to 30": {5, 30, known, known, stat.Different, stat.Regressed, stat.Passed, []string{"+500", "worse"}},
		"5 to 30 or less is not worse: it may be 4":   {5, 30, known, bounded, stat.Undecided, stat.NotDecided, stat.NotDecided, []string{"≤ 30", "~ ≤ +500", "not decided", "proves"}},
		"50 to 30 or less is better, and more or not": {50, 30, known, bounded, stat.Different, stat.Passed, stat.Regressed, []string{"≤ -40", "better"}},
		"30 or less to 50 is worse":                   {30, 50, bounded, known, stat.Different, stat.Regressed, stat.Passed, []string{"≥ +66.7", "worse"}},
		"30 or less to 5 may be as much":              {30, 5, bounded, known, stat.Undecided, stat.NotDecided, stat.NotDecided, []string{"~ ≥ -83", "not decided"}},
		"two upper bounds are not compared":           {30, 50, bounded, bounded, "", stat.NotDecided, stat.NotDecided, []string{"≤ 30", "≤ 50"}},
	} {
		sides := []Side{three("old", "a", map[string]float64{"runc": tt.old}, tt.ofOld), three("new", "b", map[string]float64{"runc": tt.new}, tt.ofNew)}
		c := compared(t, Options{}, sides...)
		if v := figure.Find(c.Figures(), "latency", "side", "new").Versus; (v == nil) != (tt.verdict == "") || v != nil && v.Verdict != tt.verdict {
			t.Errorf("%s: %+v", name, v)
		}
		text := draw(t, c.Page())
		for _, want := range tt.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		g, err := c.Gate(0.05)
		must.OK(t, err)
		latency, request := figure.Find(g.Figures, "latency"), figure.Find(g.Figures, "requests")
		if latency.Verdict != string(tt.latency) || request.Verdict != string(tt.request) {
			t.Errorf("%s: of less %s (%s), of more %s (%s)", name, latency.Verdict, latency.Reasons, request.Verdict, request.Reasons)
		}
		if text := draw(t, g.Page()); strings.Contains(text, "≤ 30") != (latency.AtMost && tt.new == 30) {
			t.Errorf("%s: the gate says\n%s", name, text)
		}
	}
}

func TestASideOfSeveralRunsIsAnUpperBoundWhereOneOfThemIs(t *testing.T) {
	t.Parallel()
	level := map[string]float64{"runc": 30}
	c := compared(t, Options{}, one("old", machine("a", map[string]float64{"runc": 5}, nil)), one("new", machine("b", level, nil), machine("c", level, bounded)))
	if f := figure.Find(c.Figures(), "latency", "side", "new"); !f.AtMost || f.Versus.Different() {
		t.Errorf("%v, %+v", f.AtMost, f.Versus)
	}
}

func TestALevelOfUpperBoundsIsWorseOnlyWhereThatIsProven(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, after bool
		verdict       string
		marks         [2]bool // ≤ before and after
	}{
		"both known":                        {false, false, "worse", [2]bool{}},
		"what is more may be less":          {false, true, "not decided", [2]bool{false, true}},
		"more than what was at most so":     {true, false, "worse", [2]bool{true, false}},
		"of two upper bounds it is unknown": {true, true, "not decided", [2]bool{true, true}},
	} {
		runs := past(40, func(i int, r *Run) float64 {
			if i < 25 && tt.before || i >= 25 && tt.after {
				bounded(r)
			}
			return step(i, 25)
		})
		h := latencies(t, runs)
		levels := h.Figures()
		if len(levels) != 2 || levels[1].Verdict != tt.verdict || levels[0].AtMost != tt.marks[0] || levels[1].AtMost != tt.marks[1] || h.Worse() != (tt.verdict == "worse") {
			t.Errorf("%s: %+v", name, levels)
		}
		if text := draw(t, h.Page()); strings.Contains(text, "≤") != (tt.before || tt.after) {
			t.Errorf("%s: it says\n%s", name, text)
		}
	}
}

func TestUpperBoundsOfNodesAreNoDistribution(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]int{"all are known": -1, "one is an upper bound": 7} {
		n, out := over(t, many(40, func(i int) func(*Run) {
			return func(r *Run) {
				if i == of {
					bounded(r)
					for k := range r.Figures {
						r.Figures[k].Estimate = figure.Exactly(500)
					}
				}
			}
		})...)
		known := of < 0
		for level, sign := range map[string]string{"min": "≤ 100", "median": "≤ 101", "max": "≤ 500"} {
			f := figure.Find(n.Figures(), "latency", "nodes", level)
			if f.AtMost == known || strings.Contains(out, sign) == known {
				t.Errorf("%s: %s is %+v\n%s", name, level, f, out)
			}
		}
		spread := figure.Find(n.Figures(), "node-spread", "nodes", "between", "of", "latency")
		if spread.Known() != known || spread.AtMost || len(n.Findings()) != 0 || len(n.kinds[0].charts(n.shown(n.kinds[0]))) > 0 != known {
			t.Errorf("%s: %+v, %v", name, spread, n.Findings())
		}
	}
}
