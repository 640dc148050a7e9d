package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/fake"
)

func logging(names ...string) (*events, []subject.Target) {
	clock, e := int64(1), new(events)
	var targets []subject.Target
	for _, n := range names {
		targets = append(targets, &fake.Target{Name: n, Script: constant(1), Clock: &clock, Log: e.log})
	}
	return e, targets
}

func TestAVisitIsAWholeLifeAndIsRecordedAsItWasDone(t *testing.T) {
	for _, lanes := range [][]int{{1}, {5}, {1, 7}} {
		const warmup, rounds = 2, 4
		log, targets := logging("a", "b", "c")
		rec, _ := weigh(t, planned(func(p *lifecycle.Options) { p.Lanes, p.Warmup, p.Rounds = lanes, warmup, rounds }), targets...)
		e := (*log)[3 : len(*log)-3] // all were opened before, and closed after
		if want := len(lanes) * (warmup + rounds) * 3 * 5; len(e) != want || len(rec.Batches) != want {
			t.Fatalf("%v lanes: %d batches were done and %d recorded, want %d", lanes, len(e), len(rec.Batches), want)
		}
		for i, b := range rec.Batches {
			if want := fmt.Sprintf("%s %s x%d", b.Target, b.Op, b.Lanes); e[i] != want {
				t.Fatalf("batch %d is recorded as %q and was %q", i, want, e[i])
			}
			op := []subject.Op{"create", "start", "stop", "rm", "run"}[i%5]
			if b.Op != string(op) || b.Target != rec.Batches[i-i%5].Target || b.Order != i/5%3 || b.Lanes != lanes[i/15/(warmup+rounds)] {
				t.Fatalf("batch %d is %+v, want %s", i, b, op)
			}
		}
	}
}

func TestASeedThatWasNotGivenIsRecorded(t *testing.T) {
	_, targets := logging("a", "b")
	_, l := weigh(t, planned(func(p *lifecycle.Options) { p.Seed = 0 }), targets...)
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
			_, l := weigh(t, planned(func(p *lifecycle.Options) { p.Ops, p.Rounds, p.Warmup = tt.ops, 8, 0 }), targets...)
			var done []string
			for _, e := range *log {
				if name, rest, _ := strings.Cut(e, " "); name == "a" {
					op, _, _ := strings.Cut(rest, " ")
					done = append(done, op)
				}
			}
			if want := slices.Repeat(tt.want, 8); !slices.Equal(done, want) {
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
