package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// controlled returns a record of crun and two controls. Each has its own latency level
// and enough operations for a spread.
func controlled(id string, host, floor, crun float64, change func(*Run)) Run {
	r := machine(id, map[string]float64{"crun": crun}, nil)
	target := r.Targets[0]
	r.Targets = nil
	var all []figure.Figure
	for i, name := range []string{"crun", "host", "floor"} {
		kind, level := name, []float64{crun, host, floor}[i]
		if name == "crun" {
			kind = "oci"
		}
		target.Name, target.Kind, target.Path = name, kind, map[string]string{"crun": "/bin/crun"}[name]
		r.Targets = append(r.Targets, target)
		for _, op := range []string{"run", "start", "stop"} {
			f := r.Figures[0]
			f.Labels = f.Labels.With("target", name).With("op", op)
			values := f.Values()
			for round := range values {
				values[round] = level * (1 + 0.002*float64(round*5%7))
			}
			f.Rounds, f.Estimate = figure.ByRound(values), figure.Median(values)
			all = append(all, f)
		}
	}
	if r.Figures = all; change != nil {
		change(&r)
	}
	return r
}

// found adds a finding to a record.
func found(f record.Finding) func(*Run) {
	return func(r *Run) { f.Level = finding.Warning; r.Found = append(r.Found, f) }
}

func TestVerdictNeedsABasis(t *testing.T) {
	t.Parallel()
	pressure, drift := record.Finding{Code: finding.Pressure, Message: "tasks waited"}, record.Finding{Code: finding.Drift, Target: "crun", Op: "run", Message: "it drifted"}
	base := controlled("a", 1, 10, 100, nil)
	for _, tt := range []struct {
		name     string
		old, new []Run
		options  Options
		want     stat.Decision
		says     string
	}{
		{"one run per side without a control is no basis", []Run{machine("a", map[string]float64{"runc": 100}, nil)}, []Run{machine("b", map[string]float64{"runc": 130}, nil)}, Options{}, stat.NotDecided, "without a control in both"},
		{"two runs per side are no basis", three("", "a", map[string]float64{"runc": 100}, nil).Runs[:2], three("", "b", map[string]float64{"runc": 130}, nil).Runs[:2], Options{}, stat.NotDecided, "without a control in both"},
		{"three runs per side are a basis", three("", "a", map[string]float64{"runc": 100}, nil).Runs, three("", "b", map[string]float64{"runc": 130}, nil).Runs, Options{Filter: "quantity:latency"}, stat.Regressed, "one per run"},
		{"control on both sides is a basis", []Run{base}, []Run{controlled("b", 1, 10, 130, nil)}, Options{}, stat.Regressed, "shift of target ÷ control"},
		{"with a control, equal runs pass", []Run{base}, []Run{controlled("b", 1, 10, 101, nil)}, Options{}, stat.Passed, ""},
		{"changed machine is not decided", []Run{base}, []Run{controlled("b", 1, 13.1, 131, nil)}, Options{}, stat.NotDecided, "the machine changed (floor +31.0 %)"},
		{"control with the largest shift counts", []Run{base}, []Run{controlled("b", 0.8, 10.2, 100, nil)}, Options{}, stat.NotDecided, "the machine changed (host -20.0 %)"},
		{"named control replaces the default ones", []Run{base}, []Run{controlled("b", 1, 13.1, 100, nil)}, Options{Control: "host"}, stat.Passed, ""},
		{"control on one side is no basis", []Run{base}, []Run{controlled("b", 1, 10, 100, nil)}, Options{Control: "runc"}, stat.NotDecided, "without a control in both"},
		{"control on a different kernel is no basis", []Run{base}, []Run{controlled("b", 1, 10, 130, func(r *Run) { r.Header.Environment.Kernel = "6.2" })}, Options{Unlike: true}, stat.NotDecided, "without a control in both"},
		{"single control figure is no basis", []Run{controlled("a", 1, 10, 100, onlyRun)}, []Run{controlled("b", 1, 10, 130, onlyRun)}, Options{Control: "floor"}, stat.NotDecided, "a single control figure does not show the spread between runs"},
		{"two control figures are a basis", []Run{controlled("a", 1, 10, 100, onlyRun)}, []Run{controlled("b", 1, 10, 130, onlyRun)}, Options{}, stat.Regressed, "target ÷ control"},
		{"round of 0 has no ratio to a control", []Run{base}, []Run{controlled("b", 1, 10, 130, zero)}, Options{Filter: "op:stop"}, stat.NotDecided, "rounds of 0 have no ratio"},
		{"disturbed new side is not decided", []Run{base}, []Run{controlled("b", 1, 10, 130, found(pressure))}, Options{}, stat.NotDecided, "new was disturbed: tasks waited"},
		{"disturbed old side is not decided", []Run{controlled("a", 1, 10, 100, found(pressure))}, []Run{controlled("b", 1, 10, 130, nil)}, Options{}, stat.NotDecided, "old was disturbed: tasks waited"},
		{"one disturbed run of two is not decided", []Run{base}, []Run{controlled("b", 1, 10, 130, nil), controlled("c", 1, 10, 130, found(pressure))}, Options{}, stat.NotDecided, "new was disturbed: tasks waited"},
		{"operation with a finding is not decided", []Run{base}, []Run{controlled("b", 1, 10, 130, found(drift))}, Options{Filter: "op:run"}, stat.NotDecided, "it drifted"},
		{"finding on another operation does not affect the verdict", []Run{base}, []Run{controlled("b", 1, 10, 130, found(drift))}, Options{Filter: "op:stop"}, stat.Regressed, "it drifted"},
		{"one disturbed run of three does not affect the verdict", three("", "a", map[string]float64{"runc": 100}, nil).Runs, append(three("", "b", map[string]float64{"runc": 130}, nil).Runs[:2], machine("b9", map[string]float64{"runc": 131}, found(pressure))), Options{Filter: "quantity:latency"}, stat.Regressed, "1 of 3"},
		{"scattered earlier runs widen the interval", []Run{base}, []Run{controlled("b", 1, 10, 130, nil)}, Options{Earlier: []Run{controlled("e1", 1, 10, 80, nil), controlled("e2", 1, 10, 100, nil), controlled("e3", 1, 10, 125, nil)}}, stat.NotDecided, "margin +5.00%"},
		{"consistent earlier runs keep the interval", []Run{base}, []Run{controlled("b", 1, 10, 130, nil)}, Options{Earlier: []Run{controlled("e1", 1, 10, 99.8, nil), controlled("e2", 1, 10, 100, nil), controlled("e3", 1, 10, 100.2, nil)}}, stat.Regressed, ""},
		{"earlier runs of another machine are ignored", []Run{base}, []Run{controlled("b", 1, 10, 130, nil)}, Options{Earlier: []Run{controlled("e1", 1, 10, 80, other), controlled("e2", 1, 10, 100, other), controlled("e3", 1, 10, 125, other)}}, stat.Regressed, ""},
	} {
		c := must.Get(New([]Side{{"old", tt.old}, {"new", tt.new}}, tt.options))(t)
		compared := draw(t, c.Page())
		for _, f := range c.Figures() {
			if v := f.Versus; v != nil && tt.want == stat.NotDecided && tt.options.Earlier == nil && v.Verdict != stat.Undecided {
				t.Errorf("%s: got the comparison %+v", tt.name, v)
			}
		}
		g := must.Get(c.Gate(0.05))(t)
		if text := draw(t, g.Page()) + compared; g.Decision != tt.want || !strings.Contains(text, tt.says) || strings.Contains(text, "to decide, ") != (tt.want == stat.NotDecided && !strings.HasPrefix(tt.says, "margin")) {
			t.Errorf("%s: %s\n%s", tt.name, g.Decision, text)
		}
	}
}

func onlyRun(r *Run) {
	r.Figures = slices.DeleteFunc(r.Figures, func(f figure.Figure) bool { return f.Labels.Get("op") != "run" })
}

// zero sets a round of crun's stop to 0.
func zero(r *Run) {
	for i := range r.Figures {
		if f := &r.Figures[i]; f.Labels.Get("target") == "crun" && f.Labels.Get("op") == "stop" {
			f.Rounds = slices.Clone(f.Rounds)
			f.Rounds[0].Value = 0
		}
	}
}

func other(r *Run) { r.Header.Environment.CPUModel = "Neoverse" }

func TestRoundsOfOneRunAreABasisDespiteLoad(t *testing.T) {
	t.Parallel()
	run := controlled("a", 1, 10, 130, found(record.Finding{Code: finding.Pressure, Message: "tasks waited"}))
	c := compared(t, Options{Col: "target@(floor crun)"}, one("a", run))
	g := must.Get(c.Gate(0.05))(t)
	if text := draw(t, g.Page()); g.Decision != stat.Regressed || !strings.Contains(text, "tasks waited") || strings.Contains(text, "to decide") {
		t.Errorf("%s\n%s", g.Decision, text)
	}
}

func TestAdviceIsAValidCommand(t *testing.T) {
	t.Parallel()
	at := func(path string) func(*Run) {
		return func(r *Run) { r.Targets[0].Path = path }
	}
	for _, tt := range []struct{ old, new, want string }{
		{"/old/runc", "/new/runc", "tare gate --interleave old=/old/runc new=/new/runc --worse 5.0%"},
		{"/bin/runc", "/bin/runc", "tare lifecycle host floor runc=/bin/runc -o more.jsonl"},
		{"/old/runc", "/x;reboot", "at least 3 records per side, or measure both sides in the same rounds"},
		{"/old/runc", "/x y", "at least 3 records per side, or measure both sides in the same rounds"},
	} {
		c := compared(t, Options{}, one("old", machine("a", map[string]float64{"runc": 100}, at(tt.old))), one("new", machine("b", map[string]float64{"runc": 100}, at(tt.new))))
		if got := c.advice(); !strings.Contains(got, tt.want) || strings.Contains(got, ";reboot") {
			t.Errorf("%s and %s: %s", tt.old, tt.new, got)
		}
	}
}

func TestDisturbedRunsHaveNoVerdict(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from, to int
		worse    bool
	}{
		"no disturbed run":                         {0, 0, true},
		"few disturbed runs of a level":            {30, 34, true},
		"most runs of the later level disturbed":   {25, 40, false},
		"most runs of the earlier level disturbed": {0, 20, false},
	} {
		h := latencies(t, past(40, func(i int, r *Run) float64 {
			if i >= tt.from && i < tt.to {
				found(record.Finding{Code: finding.Steal, Message: "CPU time was taken"})(r)
			}
			return step(i, 25)
		}))
		text := draw(t, h.Page())
		if h.Worse() != tt.worse || strings.Contains(text, fmt.Sprintf("%d of 40", tt.to-tt.from)) != (tt.to > 0) {
			t.Errorf("%s: worse is %v\n%s", name, h.Worse(), text)
		}
	}
}

func TestTimesWithDifferentEndStampsAreComparedByCall(t *testing.T) {
	t.Parallel()
	// Latencies are about 100 and 130. A call returns after the fraction calls of its
	// latency.
	until := func(stamp string, calls float64) func(*Run) {
		return func(r *Run) {
			for i := range r.Figures {
				r.Figures[i].Until = stamp
				if f := r.Figures[i]; calls > 0 && f.Quantity == "latency" {
					f.Quantity, f.Labels, f.Until, f.Rounds = "time-to", f.Labels.With("stamp", "returned"), "", slices.Clone(f.Rounds)
					for k := range f.Rounds {
						f.Rounds[k].Value *= calls
					}
					f.Estimate = figure.MedianOf(figure.Ordered(f.Values()))
					r.Figures = append(r.Figures, f)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		stamp string
		calls float64
		want  stat.Decision
		says  string
	}{
		"both end at the first instruction": {"first", 1, stat.Regressed, ""},
		"equal call times":                  {"returned", 1 / 1.3, stat.Passed, "times until the call returned are compared"},
		"longer call times":                 {"returned", 1, stat.Regressed, "times until the call returned are compared"},
		"unknown call times":                {"returned", 0, stat.NotDecided, "different stamps (first, returned)"},
		"different end stamp":               {"ready", 0, stat.NotDecided, "different stamps (first, ready)"},
	} {
		both := "first"
		old, new := map[string]float64{"runc": 100}, map[string]float64{"runc": 130}
		cmp := compared(t, Options{Filter: "quantity:latency"}, three("old", "a", old, until(both, math.Ceil(c.calls))), three("new", "b", new, until(c.stamp, c.calls)))
		g := must.Get(cmp.Gate(0.05))(t)
		text := draw(t, g.Page())
		if g.Decision != c.want || !strings.Contains(text, c.says) || c.says == "" && strings.Contains(text, "returned") {
			t.Errorf("%s: %s\n%s", name, g.Decision, text)
		}
	}
}

// bounded turns the figures of a run into upper bounds.
func bounded(r *Run) {
	for i := range r.Figures {
		r.Figures[i].AtMost, r.Figures[i].Verdict = true, figure.AtMost
	}
}

func TestUpperBoundVerdicts(t *testing.T) {
	t.Parallel()
	known := func(*Run) {}
	for name, tt := range map[string]struct {
		old, new         float64
		ofOld, ofNew     func(*Run)
		verdict          stat.Verdict // "" if not compared
		latency, request stat.Decision
		says             []string
	}{
		"5 to 30":                        {5, 30, known, known, stat.Different, stat.Regressed, stat.Passed, []string{"+500", "worse"}},
		"5 to 30 or less is not decided": {5, 30, known, bounded, stat.Undecided, stat.NotDecided, stat.NotDecided, []string{"≤ 30", "~ ≤ +500", "not decided", "proves"}},
		"50 to 30 or less is better for latencies, worse for rates": {50, 30, known, bounded, stat.Different, stat.Passed, stat.Regressed, []string{"≤ -40", "better"}},
		"30 or less to 50 is worse":                                 {30, 50, bounded, known, stat.Different, stat.Regressed, stat.Passed, []string{"≥ +66.7", "worse"}},
		"30 or less to 5 is not decided":                            {30, 5, bounded, known, stat.Undecided, stat.NotDecided, stat.NotDecided, []string{"~ ≥ -83", "not decided"}},
		"two upper bounds are not compared":                         {30, 50, bounded, bounded, "", stat.NotDecided, stat.NotDecided, []string{"≤ 30", "≤ 50"}},
	} {
		sides := []Side{three("old", "a", map[string]float64{"runc": tt.old}, tt.ofOld), three("new", "b", map[string]float64{"runc": tt.new}, tt.ofNew)}
		c := compared(t, Options{}, sides...)
		if v := figure.Find(c.Figures(), "latency", "side", "new").Versus; (v == nil) != (tt.verdict == "") || v != nil && v.Verdict != tt.verdict {
			t.Errorf("%s: %+v", name, v)
		}
		check.Contains(t, name, draw(t, c.Page()), tt.says...)
		g := must.Get(c.Gate(0.05))(t)
		latency, request := figure.Find(g.Figures, "latency"), figure.Find(g.Figures, "requests")
		if latency.Verdict != string(tt.latency) || request.Verdict != string(tt.request) {
			t.Errorf("%s: latency %s (%s), requests %s (%s)", name, latency.Verdict, latency.Reasons, request.Verdict, request.Reasons)
		}
		if text := draw(t, g.Page()); strings.Contains(text, "≤ 30") != (latency.AtMost && tt.new == 30) {
			t.Errorf("%s: page of the gate:\n%s", name, text)
		}
	}
}

func TestSideIsAnUpperBoundIfOneRunIs(t *testing.T) {
	t.Parallel()
	level := map[string]float64{"runc": 30}
	c := compared(t, Options{}, one("old", machine("a", map[string]float64{"runc": 5}, nil)), one("new", machine("b", level, nil), machine("c", level, bounded)))
	if f := figure.Find(c.Figures(), "latency", "side", "new"); !f.AtMost || f.Versus.Different() {
		t.Errorf("%v, %+v", f.AtMost, f.Versus)
	}
}

func TestUpperBoundIsWorseOnlyIfProven(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, after bool
		verdict       string
		marks         [2]bool // upper-bound marks before and after
	}{
		"both known":                    {false, false, "worse", [2]bool{}},
		"upper bound after the change":  {false, true, "not decided", [2]bool{false, true}},
		"upper bound before the change": {true, false, "worse", [2]bool{true, false}},
		"two upper bounds":              {true, true, "not decided", [2]bool{true, true}},
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
			t.Errorf("%s: page:\n%s", name, text)
		}
	}
}

func TestNodeUpperBoundsHaveNoDistribution(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]int{"all known": -1, "one upper bound": 7} {
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
