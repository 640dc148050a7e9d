package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	lifecyclerun "github.com/tare-bench/tare/internal/instrument/lifecycle/run"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/fake"
	"github.com/tare-bench/tare/record"
)

func TestCachesAreDroppedBeforeEveryColdRelease(t *testing.T) {
	for _, cache := range []terms.Cache{terms.Warm, terms.Cold} {
		log, targets := logging("a", "b")
		o := options(planned(func(p *lifecycle.Options) { p.Cache, p.Lanes, p.Rounds = cache, []int{1, 3}, 2 }), targets)
		if cache == terms.Cold {
			o.Drop = func(context.Context) error { log.log("drop"); return nil }
		}
		o.Node = func() record.Node { return record.Node{Known: true, HavePSI: true, PSIIO: 0.5} }
		rec, l := weighWith(t.Context(), t, o)
		for _, b := range rec.Batches {
			if (b.Dropped == record.DroppedNode) != (cache == terms.Cold) {
				t.Fatalf("%q: dropped %q before %s", cache, b.Dropped, b.Op)
			}
		}
		releases := 0
		for i, e := range *log {
			if !strings.Contains(e, " x") {
				continue
			}
			if releases++; ((*log)[i-1] == "drop") != (cache == terms.Cold) {
				t.Errorf("%q: %s came after %q", cache, e, (*log)[i-1])
			}
		}
		if releases != len(rec.Batches) || releases == 0 || log.count("drop") != map[terms.Cache]int{terms.Cold: releases}[cache] {
			t.Errorf("%q: %d releases in %d batches, %d drops", cache, releases, len(rec.Batches), log.count("drop"))
		}
		if presses := slices.Contains(codes(l.Found), "pressure"); presses == (cache == terms.Cold) {
			t.Errorf("%q: finding on tasks waiting for the disk: %v", cache, presses)
		}
	}
}

func TestCacheDropErrorEndsTheRun(t *testing.T) {
	log, targets := logging("a", "b")
	o := options(planned(func(p *lifecycle.Options) { p.Cache = terms.Cold }), targets)
	drops := 0
	o.Drop = func(context.Context) error {
		if drops++; drops == 8 {
			return errors.New("drop the page cache: read-only file system")
		}
		return nil
	}
	rec, l, err := lifecyclerun.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "read-only file system") {
		t.Fatalf("the run ended with %v", err)
	}
	if rec.End.Status != "failed" || len(rec.Batches) != 7 || l.Failed != 0 || log.count("close") != 2 {
		t.Errorf("end %+v, %d batches, %d failed, events %q", rec.End, len(rec.Batches), l.Failed, *log)
	}
}

func TestArmedBatchIsDisarmedIfNotReleased(t *testing.T) {
	for name, c := range map[string]struct {
		drop        func(stop func()) error
		end, sample string
	}{
		"cache cannot be dropped":         {func(func()) error { return errors.New("read-only file system") }, "failed", ""},
		"interrupted during the drop":     {func(stop func()) error { stop(); return nil }, "interrupted", record.FailInterrupted},
		"drop cancelled by the interrupt": {func(stop func()) error { stop(); return context.Canceled }, "interrupted", record.FailInterrupted},
	} {
		log, targets := logging("a", "b")
		for i := range targets {
			targets[i] = &watched{Target: targets[i],
				arming:     func(subject.Op, []int) error { log.log("arm"); return nil },
				disarming:  func() { log.log("disarm") },
				discarding: func(context.Context) error { log.log("discard"); return nil },
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		o := options(planned(func(p *lifecycle.Options) { p.Cache, p.Lanes = terms.Cold, []int{3} }), targets)
		o.Drop = func(context.Context) error { return c.drop(stop) }
		rec, l, err := lifecyclerun.Run(ctx, o)
		stop()
		if rec.End.Status != c.end || (err != nil) != (c.end == "failed") || l.Failed != 0 {
			t.Errorf("%s: end %+v, %v, %d failed", name, rec.End, err, l.Failed)
		}
		events := slices.DeleteFunc(*log, func(e string) bool { return strings.HasPrefix(e, "open") || strings.HasPrefix(e, "close") })
		if !slices.Equal(events, []string{"arm", "disarm", "discard"}) {
			t.Errorf("%s: %q", name, events)
		}
		for _, b := range rec.Batches {
			for _, s := range b.Samples {
				if b.Dropped != "" || s.Failure == nil || s.Failure.Kind != c.sample {
					t.Errorf("%s: dropped %q before %+v", name, b.Dropped, s)
				}
			}
		}
	}
}

func logging(names ...string) (*events, []subject.Target) {
	clock, e := int64(1), new(events)
	var targets []subject.Target
	for _, n := range names {
		targets = append(targets, &fake.Target{Name: n, Script: constant(1), Clock: &clock, Log: e.log})
	}
	return e, targets
}

func TestVisitIsAFullLifecycleInOrder(t *testing.T) {
	for _, lanes := range [][]int{{1}, {5}, {1, 7}} {
		const warmup, rounds = 2, 4
		log, targets := logging("a", "b", "c")
		rec, _ := weigh(t, planned(func(p *lifecycle.Options) { p.Lanes, p.Warmup, p.Rounds = lanes, warmup, rounds }), targets...)
		e := (*log)[3 : len(*log)-3] // all targets are opened before and closed after
		if want := len(lanes) * (warmup + rounds) * 3 * 5; len(e) != want || len(rec.Batches) != want {
			t.Fatalf("%v lanes: %d batches ran and %d were recorded, want %d", lanes, len(e), len(rec.Batches), want)
		}
		for i, b := range rec.Batches {
			if want := fmt.Sprintf("%s %s x%d", b.Target, b.Op, b.Lanes); e[i] != want {
				t.Fatalf("batch %d is recorded as %q, but was %q", i, want, e[i])
			}
			op := []subject.Op{"create", "start", "stop", "rm", "run"}[i%5]
			if b.Op != string(op) || b.Target != rec.Batches[i-i%5].Target || b.Order != i/5%3 || b.Lanes != lanes[i/15/(warmup+rounds)] {
				t.Fatalf("batch %d is %+v, want %s", i, b, op)
			}
		}
	}
}
