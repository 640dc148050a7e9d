package lifecycle_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func rendered(t *testing.T, r *run, format string, o page.Options) string {
	t.Helper()
	return renderedAll(t, format, o, r)
}

func renderedAll(t *testing.T, format string, o page.Options, runs ...*run) string {
	t.Helper()
	var all []instrument.Judged
	for _, r := range runs {
		rec, l := r.judged(t)
		all = append(all, instrument.Judged{Record: rec, Judgement: l})
	}
	var out bytes.Buffer
	must.OK(t, (instrument.List{lifecycle.Instrument}).Report(&out, format, all, o))
	return out.String()
}

var forms = []string{"text", "md", "csv", "json"}

func TestReportGolden(t *testing.T) {
	for name, tt := range map[string]struct {
		record func() *run
		o      page.Options
	}{
		"pair":         {func() *run { return pair(1, 100) }, page.Options{Width: 120}},
		"pair-verbose": {func() *run { return pair(1) }, page.Options{Width: 100, Verbose: true}},
		"six":          {six, page.Options{Width: 80}},
		"failing":      {failing, page.Options{Width: 100}},
		"guest":        {guest, page.Options{Width: 100}},
		"hostile":      {hostile, page.Options{Width: 120}},
		"empty":        {func() *run { return newRun([]int{1}, subject.ContainerOps...) }, page.Options{Width: 80}},
		"engines":      {func() *run { return engines(20) }, page.Options{Width: 80}},
		"pods":         {func() *run { return pods(1, 100) }, page.Options{Width: 120}},
		"cluster":      {func() *run { return cluster(1, 20) }, page.Options{Width: 100, Verbose: true}},
	} {
		t.Run(name, func(t *testing.T) {
			golden.Same(t, "testdata/"+name+".md", rendered(t, tt.record(), "md", tt.o))
			within(t, rendered(t, tt.record(), "text", tt.o), tt.o.Width)
		})
	}
}

// Features of text output only: columns, split tables and colours.
func TestTextLayoutGolden(t *testing.T) {
	golden.Same(t, "testdata/six-80.txt", rendered(t, six(), "text", page.Options{Width: 80}))
	golden.Same(t, "testdata/pair-colour.txt", rendered(t, failing(), "text", page.Options{Width: 100, Colour: true}))
}

// within returns the lines wider than a terminal.
func within(t *testing.T, text string, width int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := term.Width(strings.TrimSuffix(line, "\n")); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestSplitTablesRepeatTheBaseline(t *testing.T) {
	parts := 0
	for line := range strings.Lines(rendered(t, six(), "text", page.Options{Width: 80})) {
		if strings.HasPrefix(line, "  operation ") {
			parts++
			if names := strings.Fields(line); names[1] != "runtime-1" {
				t.Errorf("no baseline in %q", line)
			}
		}
	}
	if parts < 4 {
		t.Errorf("%d parts; the table of six targets does not fit in 80 columns", parts)
	}
}

func TestISuladPercentagesUseUnroundedMeans(t *testing.T) {
	r := newRun([]int{1}, subject.Create)
	r.runtime("runc", "")
	r.runtime("crun", "")
	r.times("runc", subject.Create, 1, 20_400, 10) // printed as 20
	r.times("crun", subject.Create, 1, 20_496, 10) // also printed as 20
	check.Contains(t, "no such row", rendered(t, r, "md", page.Options{}), "| create | 20 | 20 | +0.47% |")
}

func TestTimedIntervalIsPrintedOnce(t *testing.T) {
	r := newRun([]int{1}, subject.Start, subject.Run, subject.Stop)
	r.host()
	again := *r.host()
	r.rec.Targets[1].Name = "again"
	r.times("host", subject.Run, 1, 500, 1)
	out := rendered(t, r, "text", page.Options{Verbose: true})
	for _, want := range []string{"  start, run\n", "host, again  " + again.Operations["run"].Command + "\n"} {
		check.That(t, strings.Count(out, want) == 1, "%q does not occur exactly once in:\n%s", want, out)
	}
}

func TestUnreleasedLanesAreReported(t *testing.T) {
	r := pair(10)
	r.rec.Batches[len(r.rec.Batches)-1].Lost = 3
	check.Contains(t, "rendered", rendered(t, r, "text", page.Options{}), "crun run: 3 lanes not released")
}

func TestUnknownFormatIsRefused(t *testing.T) {
	rec, l := pair(1).judged(t)
	for _, format := range []string{"chrome", ""} {
		var out bytes.Buffer
		err := (instrument.List{lifecycle.Instrument}).Report(&out, format, []instrument.Judged{{Record: rec, Judgement: l}}, page.Options{})
		if err == nil || !strings.Contains(err.Error(), "text, md, html, json, csv") || out.Len() > 0 {
			t.Errorf("%q: got %v and %q", format, err, out.String())
		}
	}
}

func TestNaNIsPrintedAsMissing(t *testing.T) {
	rec, l := engines(1, 100).judged(t)
	nan := math.NaN()
	for i := range l.All {
		switch f := &l.All[i]; {
		case f.Labels.Get("role") != "":
			f.Value = math.Inf(1)
		case f.Rounds != nil:
			f.Value, f.Hi, f.Rounds[0].Value = nan, math.Inf(1), nan
			f.Versus = &figure.Versus{Shift: figure.Exactly(nan), P: nan, Verdict: stat.Different}
		default:
			f.Value = nan
		}
	}
	for _, format := range forms {
		var out bytes.Buffer
		if err := (instrument.List{lifecycle.Instrument}).Report(&out, format, []instrument.Judged{{Record: rec, Judgement: l}}, page.Options{Width: 100, Verbose: true}); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if s := out.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
			t.Errorf("%s contains NaN:\n%s", format, s)
		}
		if format == "json" && !json.Valid(out.Bytes()) {
			t.Error("no JSON")
		}
	}
}

const ms = 1_000_000

// written builds records by hand.
type written struct {
	plan    lifecycle.Options
	targets []string // kinds; the name of each is its kind and index
	rounds  int
	latency func(target string, op subject.Op, lane, round int) int64 // ns
	// Hooks that may change each step.
	sample func(target string, op subject.Op, round int, s *record.Sample)
	batch  func(b *record.Batch)
	change func(rec *record.Record)
}

func write(change func(*written)) *record.Record {
	w := written{plan: lifecycle.Defaults(), targets: []string{"oci", "oci"}, rounds: 10}
	w.plan.Ops = []subject.Op{subject.Run}
	w.latency = func(_ string, _ subject.Op, _, round int) int64 { return 100*ms + int64(round%3)*ms }
	if change != nil {
		change(&w)
	}
	return w.record()
}

func (w *written) record() *record.Record {
	p, err := json.Marshal(w.plan)
	if err != nil {
		panic(err)
	}
	rec := &record.Record{Header: record.Header{Type: record.TypeHeader, Schema: record.Schema, Experiment: "lifecycle", Plan: p,
		Environment: record.Environment{CPUs: 4}}}
	for i, kind := range w.targets {
		ops := map[string]record.Operation{}
		for _, op := range subject.Ops {
			ops[string(op)] = record.Operation{Command: "do " + string(op), Done: record.StampReturned, Means: "it returned"}
		}
		rec.Targets = append(rec.Targets, record.Target{Type: record.TypeTarget, Name: name(kind, i), Kind: kind, Clock: "host", Operations: ops})
	}
	clock := int64(ms)
	for _, lanes := range w.plan.Lanes {
		for round := range w.rounds {
			for i, kind := range w.targets {
				for _, op := range w.plan.Ops {
					b := record.Batch{Type: record.TypeBatch, Phase: record.PhaseMeasure, Round: round, Order: i, Target: name(kind, i), Op: string(op), Lanes: lanes, Released: clock}
					for lane := range lanes {
						s := record.Sample{Lane: lane, Start: clock + 1000}
						s.Returned = s.Start + w.latency(b.Target, op, lane, round)
						if w.sample != nil {
							w.sample(b.Target, op, round, &s)
						}
						b.Samples = append(b.Samples, s)
					}
					if w.batch != nil {
						w.batch(&b)
					}
					if err := record.Validate(&b); err != nil {
						panic(err)
					}
					rec.Batches = append(rec.Batches, b)
					clock += 1000 * ms
				}
			}
			rec.Nodes = append(rec.Nodes, record.Node{Type: record.TypeNode, Time: clock, Round: round, Phase: record.PhaseMeasure, Lanes: lanes,
				Known: true, HavePSI: true, Busy: 0.1, Steal: 0.001, PSICPU: 0.02, PSIIO: 0.01})
		}
	}
	rec.End = &record.End{Type: record.TypeEnd, Status: "done", Why: "rounds", Batches: len(rec.Batches)}
	if w.change != nil {
		w.change(rec)
	}
	return rec
}

func name(kind string, place int) string { return kind + string(rune('0'+place)) }

// judged judges a record. The result must encode as JSON, which has no NaN and no
// infinity.
func judged(t *testing.T, rec *record.Record) *lifecycle.Judgement {
	t.Helper()
	l := must.Get(lifecycle.Judge(rec))(t)
	if _, err := json.Marshal(l.Figures()); err != nil {
		t.Fatal(err)
	}
	return l
}

func codes(l *lifecycle.Judgement) []string {
	var out []string
	for _, f := range l.Found {
		out = append(out, f.Code)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
