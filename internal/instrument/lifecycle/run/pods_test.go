package run_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/fake"
	"github.com/tare-bench/tare/record"
)

// mixed is a target with pods, and one without.
func mixed() (*events, []subject.Target) {
	log, targets := logging("pods", "plain")
	targets[0].(*fake.Target).Pods = true
	return log, targets
}

// did are the operations of one target, in order.
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

func TestPodsAreVisitedAsFarAsTheyAreNeededAndPlainTargetsNeverSeeThem(t *testing.T) {
	tests := []struct {
		name  string
		ops   string
		pods  string
		plain string
		rows  string // of both; "" is what was asked for
	}{
		{"pods alone have no container", "runp stopp rmp", "runp stopp rmp", "", ""},
		{"runp needs nothing else", "runp", "runp", "", ""},
		{"stopp needs a pod", "stopp", "runp stopp", "", ""},
		{"rmp needs a stopped pod", "rmp", "runp stopp rmp", "", ""},
		{"a container needs a pod", "create", "runp create", "create", ""},
		{"containers go as far as the last one asked for", "start stop", "runp create start stop", "create start stop", ""},
		{"a pod is stopped empty", "start stopp", "runp create start stop rm stopp", "create start", ""},
		{"and so is one that is removed", "create rmp", "runp create start stop rm stopp rmp", "create", ""},
		{"run makes a pod of its own", "run", "run", "run", ""},
		{"run is no reason for a container in the other pod", "runp run stopp", "runp stopp run", "run", ""},
		{"run, stop and rm are two pods", "stop rm run", "runp create start stop rm run", "create start stop rm run", ""},
		{"everything", "runp create start stop rm stopp rmp run", "runp create start stop rm stopp rmp run", "create start stop rm run", ""},
	}
	for _, tt := range tests {
		for _, lanes := range []int{1, 20} {
			t.Run(tt.name, func(t *testing.T) {
				var ops []subject.Op
				for op := range strings.FieldsSeq(tt.ops) {
					ops = append(ops, subject.Op(op))
				}
				log, targets := mixed()
				const rounds = 8
				rec, l := weigh(t, planned(func(p *lifecycle.Options) { p.Ops, p.Rounds, p.Warmup, p.Lanes = ops, rounds, 0, []int{lanes} }), targets...)
				for name, want := range map[string]string{"pods": tt.pods, "plain": tt.plain} {
					want := slices.Repeat(strings.Fields(want), rounds)
					if got := log.did(name); !slices.Equal(got, want) {
						t.Errorf("%s did %v, want %v", name, got, want)
					}
					var recorded []string
					for _, b := range rec.Batches {
						if b.Target == name {
							recorded = append(recorded, b.Op)
						}
					}
					if !slices.Equal(recorded, want) {
						t.Errorf("of %s %v is recorded, want %v", name, recorded, want)
					}
				}
				if got := rowsOf(l); !slices.Equal(got, ops) {
					t.Errorf("the table has %v, want %v", got, ops)
				}
				if l.Failed > 0 || len(l.Found) > 0 {
					t.Errorf("%d failed; findings %+v", l.Failed, l.Found)
				}
			})
		}
	}
}

func rowsOf(l *lifecycle.Judgement) []subject.Op {
	var ops []subject.Op
	for _, t := range l.Tables {
		for _, r := range t.Rows {
			ops = append(ops, r.Op)
		}
	}
	return ops
}

func TestWhatIsTimedOfAPodIsItsOwnTime(t *testing.T) {
	_, targets := mixed()
	_, l := weigh(t, planned(func(p *lifecycle.Options) { p.Ops = subject.Ops }), targets...)
	for op, want := range podTruth {
		if c := cellOf(t, l, 1, op, "pods"); c.Time.Estimate.N != 10 || c.Time.Estimate.Value != want || c.Absent != "" {
			t.Errorf("%s: %+v", op, c)
		}
		if c := cellOf(t, l, 1, op, "plain"); c.Time.Total != 0 || c.Absent == "" || c.Trimmed.Estimate.Known() {
			t.Errorf("a target without pods has a %s: %+v", op, c)
		}
	}
	for op, want := range truth {
		for _, name := range []string{"pods", "plain"} {
			if c := cellOf(t, l, 1, op, name); c.Time.Estimate.N != 10 || c.Time.Estimate.Value != want {
				t.Errorf("%s %s: %+v", name, op, c)
			}
		}
	}
}

func TestRunIsLeftOutWhereThereIsNone(t *testing.T) {
	log, targets := mixed()
	targets[0].(*fake.Target).Absent = []subject.Op{subject.Run}
	_, l := weigh(t, planned(func(p *lifecycle.Options) { p.Ops, p.Warmup, p.Rounds = []subject.Op{subject.Run}, 0, 2 }), targets...)
	if log.did("pods") != nil || len(log.did("plain")) != 2 || l.Failed != 0 {
		t.Errorf("%q, %d failed", *log, l.Failed)
	}
}

func TestALaneWhoseContainerFailsLosesItsPod(t *testing.T) {
	log, targets := mixed()
	pods := targets[0].(*fake.Target)
	pods.Script = failing(constant(1), func(op subject.Op, lane, _ int) bool { return op == subject.Start && lane == 2 })
	_, l := weigh(t, planned(func(p *lifecycle.Options) { p.Ops, p.Lanes = subject.Ops, []int{4} }), targets...)
	for op, want := range map[subject.Op]struct{ Total, Failed, Lost int }{
		subject.RunPod: {Total: 40}, subject.Create: {Total: 40}, subject.Start: {Total: 40, Failed: 10},
		subject.Stop: {Total: 30, Lost: 10}, subject.RemovePod: {Total: 30, Lost: 10}, subject.Run: {Total: 40},
	} {
		if c := cellOf(t, l, 4, op, "pods"); c.Time.Total != want.Total || c.Time.Failed != want.Failed || c.Lost != want.Lost {
			t.Errorf("%s: %+v", op, c)
		}
	}
	if log.count("pods run x4") != 11 {
		t.Errorf("what is left of a pod keeps run from beginning: %q", *log)
	}
	var kinds []string
	for _, f := range l.Found {
		kinds = append(kinds, f.Code)
	}
	if !slices.Contains(kinds, "failed-operations") || slices.Contains(kinds, "target-given-up") {
		t.Errorf("found %v", kinds)
	}
}

func TestTheFakeRefusesWhatNoPodDoes(t *testing.T) {
	tests := []struct {
		name string
		ops  []subject.Op
	}{
		{"a container without a pod", []subject.Op{subject.Create}},
		{"a pod in a pod", []subject.Op{subject.RunPod, subject.RunPod}},
		{"to stop a pod that has a container", []subject.Op{subject.RunPod, subject.Create, subject.StopPod}},
		{"to remove a pod that runs", []subject.Op{subject.RunPod, subject.RemovePod}},
		{"to run in a pod that is there", []subject.Op{subject.RunPod, subject.Run}},
		{"to create in a stopped pod", []subject.Op{subject.RunPod, subject.StopPod, subject.Create}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake.Target{Name: "a", Pods: true, Script: constant(1)}
			s, err := f.Open(t.Context(), subject.Env{Lanes: 1})
			if err != nil {
				t.Fatal(err)
			}
			for i, op := range tt.ops {
				b, err := s.Prepare(t.Context(), op, []int{0})
				if err != nil {
					t.Fatal(err)
				}
				var samples []record.Sample
				_, samples, err = b.Start(t.Context())
				if last := i == len(tt.ops)-1; last != (err != nil) || !last && len(samples) != 1 {
					t.Errorf("%s: %v", op, err)
				}
			}
		})
	}
}

func TestALifeBeginsWithRunWhereNothingIsMadeBefore(t *testing.T) {
	for asked, want := range map[string]string{"run": "run", "rm": "run rm", "rm run": "run rm", "create start stop": ""} {
		log, targets := logging("cluster", "plain")
		targets[0].(*fake.Target).Absent = []subject.Op{subject.Create, subject.Start, subject.Stop}
		var ops []subject.Op
		for op := range strings.FieldsSeq(asked) {
			ops = append(ops, subject.Op(op))
		}
		weigh(t, planned(func(p *lifecycle.Options) { p.Ops, p.Rounds, p.Warmup = ops, 1, 0 }), targets...)
		if got := strings.Join(log.did("cluster"), " "); got != want {
			t.Errorf("of %s it did %q, want %q", asked, got, want)
		}
	}
}
