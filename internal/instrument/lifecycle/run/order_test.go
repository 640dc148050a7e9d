package run_test

import (
	"fmt"
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
