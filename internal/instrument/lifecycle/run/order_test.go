package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/fake"
	"github.com/tare-bench/tare/record"
)

func logging(names ...string) (*events, []subject.Target) {
	clock, e := int64(1), new(events)
	var targets []subject.Target
	for _, n := range names {
		targets = append(targets, &fake.Target{Name: n, Script: constant(1), Clock: &clock, Log: e.log})
	}
	return e, targets
}

func TestOrderIsOpenThenWarmupThenRoundsThenClose(t *testing.T) {
	for _, lanes := range [][]int{{1}, {5}, {1, 7}} {
		t.Run(fmt.Sprint(lanes), func(t *testing.T) {
			const warmup, rounds = 2, 4
			log, targets := logging("a", "b", "c")
			rec, _ := weigh(t, planned(func(p *plan.Lifecycle) { p.Lanes, p.Warmup, p.Rounds = lanes, warmup, rounds }), targets...)

			e := *log
			if got := []string(e[:3]); !slices.Equal(got, []string{"open a", "open b", "open c"}) {
				t.Errorf("first came %q", got)
			}
			if got := []string(e[len(e)-3:]); !slices.Equal(got, []string{"close a", "close b", "close c"}) {
				t.Errorf("last came %q", got)
			}
			e = e[3 : len(e)-3]
			if want := len(lanes) * (warmup + rounds) * 3 * 5; len(e) != want || len(rec.Batches) != want {
				t.Fatalf("%d batches were done and %d recorded, want %d", len(e), len(rec.Batches), want)
			}
			for i, b := range rec.Batches {
				if want := fmt.Sprintf("%s %s x%d", b.Target, b.Op, b.Lanes); e[i] != want {
					t.Fatalf("batch %d is recorded as %q and was %q", i, want, e[i])
				}
				if want := []subject.Op{"create", "start", "stop", "rm", "run"}[i%5]; b.Op != string(want) {
					t.Fatalf("batch %d is %s, want %s", i, b.Op, want)
				}
				round := i / 15 % (warmup + rounds)
				phase := record.PhaseMeasure
				if round < warmup {
					phase = record.PhaseWarmup
				} else {
					round -= warmup
				}
				if b.Phase != phase || b.Round != round || b.Lanes != lanes[i/15/(warmup+rounds)] || b.Order != i/5%3 {
					t.Fatalf("batch %d is %s round %d at %d lanes in place %d", i, b.Phase, b.Round, b.Lanes, b.Order)
				}
			}
			for i := 0; i < len(e); i += 15 {
				visited := map[string]bool{}
				for j := 0; j < 15; j += 5 {
					name, _, _ := strings.Cut(e[i+j], " ")
					for _, event := range e[i+j : i+j+5] {
						if !strings.HasPrefix(event, name+" ") {
							t.Fatalf("the visit of %s was disturbed by %q", name, event)
						}
					}
					visited[name] = true
				}
				if len(visited) != 3 {
					t.Fatalf("round %d visited only %v", i/15, visited)
				}
			}
		})
	}
}

func TestASeedThatWasNotGivenIsRecorded(t *testing.T) {
	_, targets := logging("a", "b")
	_, l := weigh(t, planned(func(p *plan.Lifecycle) { p.Seed = 0 }), targets...)
	if l.Plan.Seed == 0 || l.Plan.Seed >= 1<<53 {
		t.Errorf("the record's seed is %d", l.Plan.Seed)
	}
}

func TestOpsAreDoneAsFarAsTheyAreNeededAndShownAsFarAsTheyAreAskedFor(t *testing.T) {
	tests := []struct {
		name   string
		ops    []subject.Op
		absent []subject.Op
		want   []string
	}{
		{"stop needs create and start", []subject.Op{subject.Stop}, nil, []string{"create", "start", "stop"}},
		{"rm needs all before it", []subject.Op{subject.Remove}, nil, []string{"create", "start", "stop", "rm"}},
		{"run needs nothing else", []subject.Op{subject.Run}, nil, []string{"run"}},
		{"create and run are two containers", []subject.Op{subject.Run, subject.Create}, nil, []string{"create", "run"}},
		{"what the target has not is left out", []subject.Op{subject.Stop}, []subject.Op{subject.Create, subject.Remove}, []string{"start", "stop"}},
		{"a target that has nothing of it does nothing", []subject.Op{subject.Create}, []subject.Op{subject.Create, subject.Remove}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log, targets := logging("a", "other")
			targets[0].(*fake.Target).Absent = tt.absent
			_, l := weigh(t, planned(func(p *plan.Lifecycle) { p.Ops, p.Rounds, p.Warmup = tt.ops, 6, 0 }), targets...)
			var done []string
			for _, e := range *log {
				if name, rest, _ := strings.Cut(e, " "); name == "a" {
					op, _, _ := strings.Cut(rest, " ")
					done = append(done, op)
				}
			}
			if want := slices.Repeat(tt.want, 6); !slices.Equal(done, want) {
				t.Errorf("a did %v, want six times %v", done, tt.want)
			}
			var rows []subject.Op
			for _, r := range l.Tables[0].Rows {
				rows = append(rows, r.Op)
			}
			if !slices.Equal(rows, tt.ops) {
				t.Errorf("the table has %v, want %v", rows, tt.ops)
			}
			if l.Failed > 0 || len(l.Found) > 0 {
				t.Errorf("%d failed; findings %+v", l.Failed, l.Found)
			}
		})
	}
}
