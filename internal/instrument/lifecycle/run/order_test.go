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

// orders are the targets of each measured round in the order of their visits.
func orders(rec *record.Record) []string {
	var out []string
	last := -1
	for _, b := range rec.Batches {
		switch {
		case b.Phase != record.PhaseMeasure:
		case b.Round != last:
			out = append(out, b.Target)
			last = b.Round
		default:
			out[len(out)-1] += b.Target
		}
	}
	return out
}

func TestOrderDependsOnTheSeedAndTheRoundAlone(t *testing.T) {
	with := func(seed uint64, factor float64) []string {
		_, targets := logging("a", "b", "c", "d")
		for _, f := range targets {
			f.(*fake.Target).Script = constant(factor)
		}
		rec, _ := weigh(t, planned(func(p *plan.Lifecycle) { p.Seed, p.Rounds, p.Ops = seed, 100, []subject.Op{subject.Run} }), targets...)
		return orders(rec)
	}
	one := with(1, 1)
	if !slices.Equal(one, with(1, 3)) {
		t.Error("the same seed gave another order")
	}
	if slices.Equal(one, with(2, 1)) {
		t.Error("another seed gave the same order")
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(one)))); n < 20 { // of 24 that there are
		t.Errorf("100 rounds had only %d orders", n)
	}
}

func TestEveryTargetIsInEveryPlaceAboutEquallyOften(t *testing.T) {
	const seeds, rounds = 20, 100
	var all [4]int
	for seed := range uint64(seeds) {
		_, targets := logging("a", "b", "c", "d")
		rec, _ := weigh(t, planned(func(p *plan.Lifecycle) { p.Seed, p.Rounds, p.Ops = seed+1, rounds, []subject.Op{subject.Run} }), targets...)
		var places [4][4]int
		for _, o := range orders(rec) {
			for place, name := range o {
				places[name-'a'][place]++
			}
		}
		for name, n := range places {
			all[name] += n[0]
			for place, times := range n {
				if times < 8 || times > 42 { // 25 and four standard deviations, of 320 counts
					t.Errorf("seed %d: %c was in place %d in %d of %d rounds", seed+1, 'a'+name, place, times, rounds)
				}
			}
		}
	}
	t.Logf("first of %d rounds: %v times", seeds*rounds, all)
	for name, n := range all {
		if n < 430 || n > 570 { // 500 and three and a half
			t.Errorf("%c went first in %d of %d rounds", 'a'+name, n, seeds*rounds)
		}
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
