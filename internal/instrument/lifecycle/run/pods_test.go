package run_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/fake"
	"github.com/tare-bench/tare/internal/testing/must"
)

// mixed returns a pair of targets: one with pods and one without.
func mixed() (*events, []subject.Target) {
	log, targets := logging("pods", "plain")
	targets[0].(*fake.Target).Pods = true
	return log, targets
}

// did returns the operations of one target, in order.
func (e events) did(name string) []string {
	var out []string
	for _, event := range e {
		if rest, ok := strings.CutPrefix(event, name+" "); ok {
			op, _, _ := strings.Cut(rest, " ")
			out = append(out, op)
		}
	}
	return out
}

func operations(words string) (ops []subject.Op) {
	for op := range strings.FieldsSeq(words) {
		ops = append(ops, subject.Op(op))
	}
	return ops
}

func TestRequiredOpsRunAndRequestedOpsAreShown(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ops    string
		pods   bool   // whether the first target has pods
		absent string // operations the first target does not support
		first  string // operations the first target runs
		plain  string // operations the other target runs; it supports everything but pods
	}{
		{"stop needs create and start", "stop", false, "", "create start stop", "create start stop"},
		{"rm needs all before it", "rm", false, "", "create start stop rm", "create start stop rm"},
		{"run needs nothing else", "run", false, "", "run", "run"},
		{"create and run are two containers", "run create", false, "", "create run", "create run"},
		{"unsupported operations are skipped", "stop", false, "create rm", "start stop", "create start stop"},
		{"target without the operations does nothing", "create", false, "create rm", "", "create"},
		{"unsupported run is skipped", "run", true, "run", "", "run"},

		{"lifecycle without create begins with run", "run", false, "create start stop", "run", "run"},
		{"lifecycle without create removes what run created", "rm", false, "create start stop", "run rm", "create start stop rm"},
		{"lifecycle without create runs once", "rm run", false, "create start stop", "run rm", "create start stop rm run"},
		{"lifecycle without create, start and stop", "create start stop", false, "create start stop", "", "create start stop"},

		{"pods alone have no container", "runp stopp rmp", true, "", "runp stopp rmp", ""},
		{"runp needs nothing else", "runp", true, "", "runp", ""},
		{"stopp needs a pod", "stopp", true, "", "runp stopp", ""},
		{"rmp needs a stopped pod", "rmp", true, "", "runp stopp rmp", ""},
		{"a container needs a pod", "create", true, "", "runp create", "create"},
		{"containers end with the last requested operation", "start stop", true, "", "runp create start stop", "create start stop"},
		{"pod is stopped without a container", "start stopp", true, "", "runp create start stop rm stopp", "create start"},
		{"pod is removed without a container", "create rmp", true, "", "runp create start stop rm stopp rmp", "create"},
		{"run creates its own pod", "run", true, "", "run", "run"},
		{"run creates no container in the other pod", "runp run stopp", true, "", "runp stopp run", "run"},
		{"run, stop and rm are two pods", "stop rm run", true, "", "runp create start stop rm run", "create start stop rm run"},
		{"all operations", "runp create start stop rm stopp rmp run", true, "", "runp create start stop rm stopp rmp run", "create start stop rm run"},
	} {
		for _, lanes := range []int{1, 20} {
			t.Run(tt.name, func(t *testing.T) {
				log, targets := logging("first", "plain")
				first := targets[0].(*fake.Target)
				first.Pods, first.Absent = tt.pods, operations(tt.absent)
				const rounds = 8
				rec, l := weigh(t, planned(func(p *lifecycle.Options) {
					p.Ops, p.Rounds, p.Warmup, p.Lanes = operations(tt.ops), rounds, 0, []int{lanes}
				}), targets...)
				for name, want := range map[string]string{"first": tt.first, "plain": tt.plain} {
					want := slices.Repeat(strings.Fields(want), rounds)
					if got := log.did(name); !slices.Equal(got, want) {
						t.Errorf("%s ran %v, want %v", name, got, want)
					}
					var recorded []string
					for _, b := range rec.Batches {
						if b.Target == name {
							recorded = append(recorded, b.Op)
						}
					}
					check.That(t, slices.Equal(recorded, want), "%s: recorded %v, want %v", name, recorded, want)
				}
				check.Equal(t, "rows", rowsOf(l), operations(tt.ops))
				if l.Failed > 0 || len(l.Found) > 0 {
					t.Errorf("%d failed; findings %+v", l.Failed, l.Found)
				}
			})
		}
	}
}

func rowsOf(l *lifecycle.Judgement) []subject.Op {
	var ops []subject.Op
	for _, row := range l.All.Parts("op") {
		ops = append(ops, subject.Op(row.Get("op")))
	}
	return ops
}

func TestPodTimeExcludesItsContainer(t *testing.T) {
	_, targets := mixed()
	_, l := weigh(t, planned(func(p *lifecycle.Options) { p.Ops = subject.Ops }), targets...)
	for op, want := range podTruth {
		if c := cellOf(t, l, 1, op, "pods"); c[0].Estimate.N != 10 || c[0].Estimate.Value != want {
			t.Errorf("%s: %+v", op, c)
		}
		if c := l.All.Part("op", string(op)).Part("target", "plain"); c[0].Quantity != "" {
			t.Errorf("a target without pods has a %s: %+v", op, c)
		}
	}
	for op, want := range truth {
		for _, name := range []string{"pods", "plain"} {
			if c := cellOf(t, l, 1, op, name); c[0].Estimate.N != 10 || c[0].Estimate.Value != want {
				t.Errorf("%s %s: %+v", name, op, c)
			}
		}
	}
}

func TestFailedContainerLosesItsPod(t *testing.T) {
	log, targets := mixed()
	pods := targets[0].(*fake.Target)
	pods.Script = failing(constant(1), func(op subject.Op, lane, _ int) bool { return op == subject.Start && lane == 2 })
	_, l := weigh(t, planned(func(p *lifecycle.Options) { p.Ops, p.Lanes = subject.Ops, []int{4} }), targets...)
	for op, want := range map[subject.Op]struct{ Total, Failed, Lost int }{
		subject.RunPod: {Total: 40}, subject.Create: {Total: 40}, subject.Start: {Total: 40, Failed: 10},
		subject.Stop: {Total: 30, Lost: 10}, subject.RemovePod: {Total: 30, Lost: 10}, subject.Run: {Total: 40},
	} {
		if c := cellOf(t, l, 4, op, "pods"); c[0].Total != want.Total || c[0].Failed != want.Failed || lost(c) != want.Lost {
			t.Errorf("%s: %+v", op, c)
		}
	}
	check.That(t, log.count("pods run x4") == 11, "leftovers of a pod prevent run: %q", *log)
	if kinds := codes(l.Found); !slices.Contains(kinds, "failed-operations") || slices.Contains(kinds, "target-given-up") {
		t.Errorf("found %v", kinds)
	}
}

func TestFakeRefusesInvalidPodOperations(t *testing.T) {
	for name, ops := range map[string]string{
		"container without a pod":        "create",
		"pod in a pod":                   "runp runp",
		"stop of a pod with a container": "runp create stopp",
		"removal of a running pod":       "runp rmp",
		"run in an existing pod":         "runp run",
		"create in a stopped pod":        "runp stopp create",
	} {
		f := &fake.Target{Name: "a", Pods: true, Script: constant(1)}
		s := must.Get(f.Open(t.Context(), subject.Env{Lanes: 1}))(t)
		all := operations(ops)
		for i, op := range all {
			b := must.Get(s.Prepare(t.Context(), op, []int{0}))(t)
			_, samples, err := b.Start(t.Context())
			if last := i == len(all)-1; last != (err != nil) || !last && len(samples) != 1 {
				t.Errorf("%s, %s: %v", name, op, err)
			}
		}
	}
}
