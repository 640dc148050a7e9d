package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// machine returns a record of targets with latencies around given levels. change may
// modify its environment.
func machine(id string, targets map[string]float64, change func(*Run)) Run {
	r := Run{Header: record.Header{RunID: id, Experiment: "lifecycle", Version: "v1", Plan: json.RawMessage(`{"lanes":[1],"limits":{"memory":1,"pids":2},"rounds":12}`),
		Environment: record.Environment{Kernel: "6.1.0", Arch: "amd64", CPUModel: "EPYC", CPUs: 4, Memory: 1 << 30}}}
	for _, name := range []string{"runc", "kata", "crun"} {
		level, ok := targets[name]
		if !ok {
			continue
		}
		r.Targets = append(r.Targets, record.Target{Name: name, Version: "1.0", Path: "/bin/" + name, Operations: map[string]record.Operation{"run": {Command: "/bin/" + name + " run", Done: "returned"}}})
		values := stat.Rounds{}
		for i := range 12 {
			values[i] = level * (1 + 0.001*float64(i*7%5))
		}
		for _, better := range []figure.Direction{figure.Less, figure.More} {
			r.Figures = append(r.Figures, figure.Figure{Experiment: "lifecycle", Quantity: map[figure.Direction]string{figure.Less: "latency", figure.More: "requests"}[better], Unit: figure.Nanoseconds,
				Better: better, Labels: figure.Of("target", name, "op", "run", "lanes", "1"), Rounds: figure.ByRound(values), Estimate: figure.Median(values)})
		}
	}
	if change != nil {
		change(&r)
	}
	return r
}

func one(name string, runs ...Run) Side { return Side{Name: name, Runs: runs} }

// three returns a side of three runs that vary by 0.1 %.
func three(name, id string, targets map[string]float64, change func(*Run)) Side {
	side := Side{Name: name}
	for i := range 3 {
		levels := map[string]float64{}
		for target, level := range targets {
			levels[target] = level * (1 + 0.001*float64(i))
		}
		side.Runs = append(side.Runs, machine(fmt.Sprint(id, i), levels, change))
	}
	return side
}

// compared compares sides that must be comparable.
func compared(t *testing.T, o Options, sides ...Side) *Comparison {
	t.Helper()
	c := must.Get(New(sides, o))(t)
	return c
}

func draw(t *testing.T, p *page.Page) string {
	t.Helper()
	var out strings.Builder
	must.OK(t, page.Write(&out, "text", []*page.Page{p}, page.Options{Verbose: true}))
	return out.String()
}

func TestDifferencesDetermineTheWarnings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		change  func(*Run)
		refused string
		verdict stat.Verdict
		says    string
	}{
		{"similar records are compared", nil, "", stat.Different, "worse"},
		{"different machines have no verdict", func(r *Run) { r.Header.Environment.CPUModel = "Neoverse" }, "CPU: EPYC (old), Neoverse (new)", stat.Undecided, "no verdict: the records differ in their machine"},
		{"different machines and tare versions have no verdict", func(r *Run) { r.Header.Environment.CPUModel, r.Header.Version = "Neoverse", "v2" }, "tare: v1", stat.Undecided, "no verdict: the records differ in their machine"},
		{"different architectures have no verdict", func(r *Run) { r.Header.Environment.Arch = "arm64" }, "arch: amd64", stat.Undecided, "no verdict"},
		{"unknown and known machine have no verdict", func(r *Run) { r.Header.Environment = record.Environment{} }, "machine", stat.Undecided, "no verdict"},
		{"different kernels on a machine: verdict on the kernel", func(r *Run) {
			r.Header.Environment.Kernel, r.Header.Environment.Memory = "6.18.0", r.Header.Environment.Memory-1<<20
		}, "kernel: 6.1.0 (old), 6.18.0 (new)", stat.Different, "verdicts are on kernel"},
		{"different versions: verdict on the version", func(r *Run) { r.Targets[0].Version = "1.1" }, "runc version: 1.0", stat.Different, "verdicts are on version"},
		{"different versions and kernels: verdict on both", func(r *Run) { r.Targets[0].Version, r.Header.Environment.Kernel = "1.1", "6.2" }, "kernel", stat.Different, "verdicts are on kernel and version"},
		{"different configuration: verdict on the configuration", func(r *Run) { r.Targets[0].Config = map[string]string{"sandbox_cgroup_only": "true"} }, "runc sandbox_cgroup_only: ? (old), true (new)", stat.Different, "verdicts are on configuration"},
		{"different options: verdict on the options", func(r *Run) {
			r.Header.Plan = json.RawMessage(`{"lanes":[1],"limits":{"memory":2,"pids":2},"rounds":12}`)
		}, "option limits", stat.Different, "verdicts are on options"},
		{"cold and warm: verdict on the options", func(r *Run) {
			r.Header.Plan = json.RawMessage(`{"lanes":[1],"limits":{"memory":1,"pids":2},"rounds":12,"cache":"cold"}`)
		}, `option cache: not given (old), "cold" (new)`, stat.Different, "verdicts are on options"},
		{"different rounds and sweeps are no difference", func(r *Run) {
			r.Header.Plan = json.RawMessage(`{"lanes":[1,50],"limits":{"memory":1,"pids":2},"rounds":40,"seed":7}`)
		}, "", stat.Different, "worse"},
		{"key order and number format of options are no difference", func(r *Run) {
			r.Header.Plan = json.RawMessage(`{"limits":{"pids":2,"memory":1.0},"lanes":[1],"rounds":12}`)
		}, "", stat.Different, "worse"},
		{"different definition has no verdict", func(r *Run) { r.Targets[0].Operations = map[string]record.Operation{"run": {Done: "first"}} }, "runc run", stat.Undecided, "no verdict: the records differ in their definition"},
		{"different path is no difference", func(r *Run) {
			r.Targets[0].Path, r.Targets[0].Operations = "/new/runc", map[string]record.Operation{"run": {Command: "/new/runc run", Done: "returned"}}
		}, "", stat.Different, "worse"},
		{"different tare versions have no verdict", func(r *Run) { r.Header.Version = "v2" }, "tare: v1 (old), v2 (new)", stat.Undecided, "no verdict"},
	} {
		sides := []Side{three("old", "a", map[string]float64{"runc": 100}, nil), three("new", "b", map[string]float64{"runc": 110}, tt.change)}
		_, err := New(sides, Options{})
		if (err != nil) != (tt.refused != "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%s: %v", tt.name, err)
		}
		c, err := New(sides, Options{Unlike: true})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		f := figure.Find(c.Figures(), "latency", "side", "new")
		if f.Versus == nil || f.Versus.Verdict != tt.verdict || f.Versus.Shift.Value < 0.09 {
			t.Errorf("%s: %+v", tt.name, f.Versus)
		}
		text := draw(t, c.Page())
		if !strings.Contains(text, tt.says) || strings.Contains(text, "unlike records") != (tt.refused != "") || len(c.Findings()) > 0 != (tt.refused != "") {
			t.Errorf("%s: page:\n%s", tt.name, text)
		}
	}
}

func TestRecordsOfUnknownMachinesAreCompared(t *testing.T) {
	t.Parallel()
	on := func(name string) func(*Run) {
		return func(r *Run) {
			r.Header.Environment = record.Environment{}
			if name != "" {
				r.Labels = figure.Of("machine", name)
			}
		}
	}
	named := func(r *Run) { r.Labels = figure.Of("machine", "a") }
	for _, tt := range []struct {
		name     string
		old, new func(*Run)
		refused  string
		unknown  bool
	}{
		{"both unknown, reported once", on(""), on(""), "", true},
		{"machine named by a label", on("a"), on("a"), "", false},
		{"known machine with the same label", named, on("a"), "", false},
		{"different labels are different machines", on("a"), on("b"), "machine: a (old), b (new)", false},
		{"label on one side only", on("a"), on(""), "machine: a (old), ? (new)", true},
		{"known machines with different labels", named, func(r *Run) { r.Labels = figure.Of("machine", "b") }, "machine: a (old), b (new)", false},
	} {
		sides := []Side{three("old", "a", map[string]float64{"runc": 100}, tt.old), three("new", "b", map[string]float64{"runc": 110}, tt.new)}
		c, err := New(sides, Options{})
		if tt.refused != "" {
			check.That(t, err != nil && strings.Contains(err.Error(), tt.refused), "%s: %v", tt.name, err)
			continue
		}
		must.OK(t, err)
		text := draw(t, c.Page())
		check.That(t, strings.Count(text, "is unknown") == map[bool]int{true: 1}[tt.unknown] && strings.Contains(text, "worse p<"), "%s: page:\n%s", tt.name, text)
	}
}

func TestWorseFollowsTheFiguresDirection(t *testing.T) {
	t.Parallel()
	c := compared(t, Options{}, three("old", "a", map[string]float64{"runc": 100}, nil), three("new", "b", map[string]float64{"runc": 110}, nil))
	text := draw(t, c.Page())
	_, tables, _ := strings.Cut(text, "lifecycle latency") // skip the summary, which counts both
	tables, _, _ = strings.Cut(tables, "→ ")
	latency, requests, _ := strings.Cut(tables, "lifecycle requests")
	if !strings.Contains(latency, "worse") || strings.Contains(latency, "better") || !strings.Contains(requests, "better") || strings.Contains(requests, "worse") {
		t.Errorf("page:\n%s", text)
	}
}

func TestFiguresOfOneSideAreListed(t *testing.T) {
	t.Parallel()
	c := compared(t, Options{}, three("old", "a", map[string]float64{"runc": 100, "kata": 300}, nil), three("new", "b", map[string]float64{"runc": 100, "crun": 50}, nil))
	text := draw(t, c.Page())
	check.Contains(t, "text", text, "on one side only", "only in old  latency   target=kata", "only in new  latency   target=crun")
	if all := c.Figures(); figure.Find(all, "latency", "target", "kata").Reasons == nil || figure.Find(all, "latency", "target", "crun").Reasons == nil {
		t.Error("figures of one side have no reasons")
	}
}

func TestProjectionsMatchBenchstat(t *testing.T) {
	t.Parallel()
	record := machine("a", map[string]float64{"runc": 100, "kata": 300, "crun": 50}, nil)
	other := machine("b", map[string]float64{"runc": 100, "kata": 300}, func(r *Run) { r.Header.Environment.Arch = "arm64" })
	for _, tt := range []struct {
		name    string
		sides   []Side
		options Options
		columns string // columns of the first table
		pairs   int
		of      string
		wrong   string
	}{
		{"targets of one record share their rounds", []Side{one("a", record)}, Options{Col: "target"}, "runc kata crun", 4, figure.OfPairs, ""},
		{"values in brackets select and order", []Side{one("a", record)}, Options{Col: "target@(kata runc)"}, "kata runc", 2, figure.OfPairs, ""},
		{"alphabetical order", []Side{one("a", record)}, Options{Col: "target@alpha"}, "crun kata runc", 4, figure.OfPairs, ""},
		{"filter excludes", []Side{one("a", record)}, Options{Col: "target", Filter: "quantity:latency -target:crun"}, "runc kata", 1, figure.OfPairs, ""},
		{"filter with expressions", []Side{one("a", record)}, Options{Col: "target", Filter: "quantity:/^late/ AND (target:runc OR target:crun)"}, "runc crun", 1, figure.OfPairs, ""},
		{"table per architecture compares within it", []Side{one("x", record), one("y", other)}, Options{Col: "target@(runc kata)", Table: "arch"}, "runc kata", 4, figure.OfPairs, ""},
		{"header field as a column", []Side{one("x", record), one("y", other)}, Options{Col: "arch", Unlike: true}, "amd64 arm64", 4, figure.OfRounds, ""},
		{"two figures in a cell are refused", []Side{one("a", record)}, Options{Row: "op", Table: "lanes", Col: "side"}, "", 0, "", "share a cell"},
		{"unknown key is refused", []Side{one("a", record)}, Options{Col: "speed"}, "", 0, "", `--col: unknown key "speed"; the keys are target, op`},
		{"benchstat's own keys are refused", []Side{one("a", record)}, Options{Row: ".fullname"}, "", 0, "", `--row: unknown key ".fullname"; the keys are target, op`},
		{"invalid filter is refused", []Side{one("a", record)}, Options{Filter: "target:("}, "", 0, "", "--filter: "},
		{"filter without matches is refused", []Side{one("a", record)}, Options{Col: "target", Filter: "op:stop"}, "", 0, "", "nothing to compare"},
		{"the same run twice is refused", []Side{one("a", record), one("b", record)}, Options{}, "", 0, "", "a and b have the same run"},
	} {
		c, err := New(tt.sides, tt.options)
		if tt.wrong != "" || err != nil {
			if err == nil || tt.wrong == "" || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if got := strings.Join(c.Tables[0].Columns, " "); got != tt.columns || len(c.pairs) != tt.pairs || c.pairs[0].figure.Versus.Of != tt.of {
			t.Errorf("%s: columns %s, %d pairs of %s", tt.name, got, len(c.pairs), c.pairs[0].figure.Versus.Of)
		}
	}
}

func TestEachRunOfASideCountsOnce(t *testing.T) {
	t.Parallel()
	var old, new []Run
	for i, level := range []float64{100, 103, 98, 101, 99} {
		old = append(old, machine(fmt.Sprint("a", i), map[string]float64{"runc": level}, nil))
		new = append(new, machine(fmt.Sprint("b", i), map[string]float64{"runc": level + 2}, nil))
	}
	c := compared(t, Options{Filter: "quantity:latency"}, one("old", old...), one("new", new...))
	f := figure.Find(c.Figures(), "latency", "side", "new")
	if v := f.Versus; v.Of != figure.OfRuns || v.Shift.N != 5 || v.Verdict == stat.Different || len(f.Rounds) != 60 || f.N != 5 {
		t.Errorf("five runs that scatter more than they differ: %+v of %d values", f.Versus, len(f.Rounds))
	}
	if text := draw(t, c.Page()); strings.Contains(text, "unknown") || strings.Contains(text, "not known") || !strings.Contains(text, "one per run") {
		t.Errorf("page:\n%s", text)
	}
	cold := machine("c", map[string]float64{"runc": 100}, func(r *Run) {
		r.Header.Plan = json.RawMessage(`{"lanes":[1],"limits":{"memory":1,"pids":2},"cache":"cold"}`)
	})
	if _, err := New([]Side{one("old", old[0], cold), one("new", new...)}, Options{}); !errors.Is(err, ErrUnlike) {
		t.Errorf("warm and cold run on one side: %v", err)
	}
	single, err := New([]Side{one("old", old[0]), one("new", new[0])}, Options{Filter: "quantity:latency"})
	if err != nil || single.Tables[0].Rows[0].Of[1].Versus.Verdict != stat.Undecided {
		t.Errorf("one run per side has a difference: %v", err)
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	old := three("old", "a", map[string]float64{"runc": 100}, nil)
	for _, tt := range []struct {
		name   string
		new    Side
		metric string
		want   stat.Decision
		why    string
	}{
		{"less than the margin is passed", three("new", "b", map[string]float64{"runc": 101}, nil), "quantity:latency", stat.Passed, "margin +5.00%"},
		{"more than the margin is worse", three("new", "b", map[string]float64{"runc": 110}, nil), "quantity:latency", stat.Regressed, "margin +5.00%"},
		{"decrease is worse if more is better", three("new", "b", map[string]float64{"runc": 90}, nil), "quantity:requests", stat.Regressed, "margin -5.00%"},
		{"decrease is passed if less is better", three("new", "b", map[string]float64{"runc": 90}, nil), "quantity:latency", stat.Passed, ""},
		{"different version is decided", three("new", "b", map[string]float64{"runc": 110}, func(r *Run) { r.Targets[0].Version = "2" }), "quantity:latency", stat.Regressed, ""},
		{"different machine is not decided", three("new", "b", map[string]float64{"runc": 110}, func(r *Run) { r.Header.Environment.Arch = "arm64" }), "quantity:latency", stat.NotDecided, "no verdict"},
		{"close to the margin is not decided", three("new", "b", map[string]float64{"runc": 105.05}, nil), "quantity:latency", stat.NotDecided, ""},
		{"missing figure is named and not decided", three("new", "b", map[string]float64{"runc": 100}, func(r *Run) {
			r.Figures[0].Labels = r.Figures[0].Labels.With("op", "stop")
		}), "quantity:(latency OR requests)", stat.NotDecided, "only in old"},
		{"more failures are not decided", three("new", "b", map[string]float64{"runc": 100}, func(r *Run) { r.Figures[0].Failed, r.Figures[0].Total = 1, 13 }), "quantity:latency", stat.NotDecided, "3 of 39"},
	} {
		c, err := New([]Side{old, tt.new}, Options{Filter: tt.metric, Unlike: strings.Contains(tt.why, "no verdict"), Versions: true})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		g, err := c.Gate(0.05)
		if err != nil || g.Decision != tt.want {
			t.Errorf("%s: %v, %+v", tt.name, err, g)
			continue
		}
		if text := draw(t, g.Page()); !strings.Contains(text, tt.why) || !strings.Contains(text, "gate: "+string(tt.want)) {
			t.Errorf("%s: page:\n%s", tt.name, text)
		}
	}
}

// If the rounds are skewed, the shift is not the ratio of the medians.
func TestGeometricMeanUsesTheShownShifts(t *testing.T) {
	t.Parallel()
	levels := map[string]float64{"runc": 100, "kata": 300, "crun": 50}
	skewed := func(r *Run) {
		for i := range r.Figures {
			f, values := &r.Figures[i], stat.Rounds{}
			for _, one := range f.Rounds {
				values[one.Round] = one.Value * (1 + float64(one.Round*one.Round)/10)
			}
			f.Rounds, f.Estimate = figure.ByRound(values), figure.Median(values)
		}
	}
	c := compared(t, Options{}, one("old", machine("a", levels, nil)), one("new", machine("b", levels, skewed)))
	for i := range c.Tables {
		table, product, medians := c.Tables[i], 1.0, 1.0
		for _, row := range table.Rows {
			product *= 1 + row.Of[1].Versus.Shift.Value
			medians *= row.Of[1].Value / row.Of[0].Value
		}
		mean := table.Means[1]
		if want := math.Cbrt(product); len(table.Rows) != 3 || mean.Rows != 3 || math.Abs(mean.Ratio-want) > 1e-9 || math.Abs(math.Cbrt(medians)-want) < 0.005 {
			t.Errorf("%s: got %+v, want %v from the shifts; the medians give %v", table.Title, mean, want, math.Cbrt(medians))
		}
		if f := figure.Find(c.Figures(), "geomean-ratio", "of", table.Title); f.Value != mean.Ratio {
			t.Errorf("%s is exported as %+v", table.Title, f)
		}
		check.Contains(t, "there", draw(t, c.Page()), page.Percent(100*(mean.Ratio-1)))
	}
}
