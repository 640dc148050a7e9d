package run_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/fake"
	"github.com/tare-bench/tare/record"
)

func TestLaneFailingInCreateIsLostLater(t *testing.T) {
	// There are 4 lanes. The create of lane 2 fails in rounds 3 and 6, which are batches
	// 4 and 7 of the fake after one warm-up.
	flaky := failing(constant(1), func(op subject.Op, lane, n int) bool {
		return op == subject.Create && lane == 2 && (n/4 == 4 || n/4 == 7)
	})
	rec, l := weigh(t, planned(func(p *lifecycle.Options) { p.Lanes = []int{4} }), &fake.Target{Name: "a", Script: flaky})

	if c := cellOf(t, l, 4, subject.Create, "a"); c[0].Failed != 2 || c[0].Total != 40 || lost(c) != 0 || c[0].Estimate.N != 8 || laneCount(c) != 38 {
		t.Errorf("create: %+v %+v", c, c[0])
	}
	for _, op := range []subject.Op{subject.Start, subject.Stop, subject.Remove} {
		// A batch with three lanes does not match the requested four.
		if c := cellOf(t, l, 4, op, "a"); c[0].Failed != 0 || c[0].Total != 38 || lost(c) != 2 || c[0].Estimate.N != 8 {
			t.Errorf("%s: %+v", op, c)
		}
	}
	if c := cellOf(t, l, 4, subject.Run, "a"); c[0].Failed != 0 || c[0].Total != 40 || lost(c) != 0 || c[0].Estimate.N != 10 {
		t.Errorf("run starts with all lanes: %+v", c)
	}
	for _, b := range rec.Batches {
		for _, s := range b.Samples {
			if b.Lost == 1 && s.Lane == 2 {
				t.Errorf("the lost lane was released for %s", b.Op)
			}
		}
	}
	check.Equal(t, "findings of failed operations", len(found(t, l, "failed-operations")), 1)
}

func TestFailingTargetIsAbandoned(t *testing.T) {
	for _, warmup := range []int{0, 1, 5} {
		log := new(events)
		rec, l := weigh(t, planned(func(p *lifecycle.Options) { p.Warmup = warmup }),
			&fake.Target{Name: "a", Script: constant(1)},
			&fake.Target{Name: "broken", Script: failing(constant(1), always), Log: log.log})

		// a failed create ends the chain; run is tried separately
		want := events{"open broken", "broken create x1", "broken run x1", "broken create x1", "broken run x1", "close broken"}
		check.That(t, slices.Equal(*log, want), "warm-up %d: %q", warmup, *log)
		measured := max(2-warmup, 0)
		for _, op := range []subject.Op{subject.Create, subject.Run} {
			c := cellOf(t, l, 1, op, "broken")
			if c[0].Failed != measured || c[0].Total != measured || c[0].Estimate.N != 0 || c.Of("trimmed-mean").Known() || c[0].Versus != nil || c.Of("time-to").Known() {
				t.Errorf("warm-up %d: %+v", warmup, c)
			}
		}
		if c := cellOf(t, l, 1, subject.Run, "a"); c[0].Estimate.N != 10 || c[0].Failed != 0 {
			t.Errorf("warm-up %d: other target %+v", warmup, c)
		}
		if f := found(t, l, "target-given-up"); len(f) != 1 || f[0].Target != "broken" {
			t.Errorf("warm-up %d: abandoned %+v", warmup, f)
		}
		if l.Failed != 4 || rec.End.Failures != 4 || rec.End.Status != "done" || rec.End.Why != "rounds" {
			t.Errorf("warm-up %d: %d failed, end %+v", warmup, l.Failed, rec.End)
		}
	}
}

func TestBrokenLanesAbandonOnlyTheirTarget(t *testing.T) {
	log, targets := logging("a", "b")
	rounds := 0
	targets[1] = &watched{Target: targets[1], arming: func(op subject.Op, _ []int) error {
		if op == subject.Create {
			rounds++
		}
		if rounds == 4 && op == subject.Start {
			return errors.New("lane 0 is gone")
		}
		return nil
	}}
	_, l := weigh(t, planned(nil), targets...)
	f := found(t, l, "target-given-up")
	if len(f) != 1 || f[0].Target != "b" || !strings.Contains(f[0].Message, "lane 0 is gone") {
		t.Errorf("findings %+v", f)
	}
	// One warm-up, two full rounds and a create.
	if log.count("b run") != 3 || log.count("b create") != 4 || log.count("a run") != 11 || log.count("close ") != 2 {
		t.Errorf("events %q", *log)
	}
	if c := cellOf(t, l, 1, subject.Start, "b"); c[0].Failed != 1 || c[0].Total != 3 || c[0].Estimate.N != 2 {
		t.Errorf("%+v", c)
	}
}

func TestRemoveFailureIsReported(t *testing.T) {
	_, targets := logging("a", "b")
	discards := 0
	targets[0] = &watched{Target: targets[0], discarding: func(context.Context) error {
		if discards++; discards == 5 {
			return errors.New("device is busy")
		}
		return nil
	}}
	targets[1] = &watched{Target: targets[1], closing: func() error { return errors.New("cgroup is busy") }}
	_, l := weigh(t, planned(nil), targets...)
	if f := found(t, l, "target-given-up"); len(f) != 1 || f[0].Target != "a" || !strings.Contains(f[0].Message, "device is busy") {
		t.Errorf("findings %+v", f)
	}
	if f := found(t, l, "left-behind"); len(f) != 1 || f[0].Target != "b" || f[0].Advice != "run: tare clean" {
		t.Errorf("findings %+v", f)
	}
}

func near(got, want, within float64) bool { return math.Abs(got-want) <= within*math.Abs(want) }

func TestConstantLatenciesAreMeasuredExactly(t *testing.T) {
	_, l := weigh(t, planned(func(p *lifecycle.Options) { p.Lanes = []int{1, 20} }), pair(constant(1), constant(2))...)
	for i, name := range []string{"a", "b"} {
		for op, median := range truth {
			latency := median * float64(i+1)
			one := cellOf(t, l, 1, op, name)
			if s := one[0].Estimate; s.N != 10 || s.Value != latency || !s.Bounded || s.Lo != latency || s.Hi != latency || one.Of("trimmed-mean").Value != latency {
				t.Errorf("%s %s, one lane: %+v", name, op, one)
			}
			if b := one; laneCount(b) != 10 || lane(b, "p50") != latency || lane(b, "max") != latency || lane(b, "release-skew") != 0 || lane(b, "parallelism") != 1 {
				t.Errorf("%s %s, one lane: %+v", name, op, b)
			}
			// The fake starts its lanes 10 ns apart.
			many, makespan := cellOf(t, l, 20, op, name), latency+190
			if s := many[0].Estimate; s.N != 10 || s.Value != makespan || many.Of("trimmed-mean").Value != makespan {
				t.Errorf("%s %s, 20 lanes: %+v, want %v", name, op, s, makespan)
			}
			b := many
			if laneCount(b) != 200 || lane(b, "p50") != latency || lane(b, "p99") != latency || lane(b, "max") != latency || lane(b, "release-skew") != 190 || skewMax(b) != 190 || !near(lane(b, "parallelism"), 20*latency/makespan, 1e-12) {
				t.Errorf("%s %s, 20 lanes: %+v", name, op, b)
			}
			if one[0].Failed+many[0].Failed+lost(one)+lost(many) != 0 || one[0].Total != 10 || many[0].Total != 200 {
				t.Errorf("%s %s: totals %d and %d", name, op, one[0].Total, many[0].Total)
			}
		}
	}
	for _, op := range subject.ContainerOps {
		if v := cellOf(t, l, 1, op, "b")[0].Versus; v == nil || v.Baseline != "a" || math.Abs(v.Shift.Value-1) > 1e-9 || !v.Different() {
			t.Errorf("%s: twice as long: %+v", op, v)
		}
	}
}

func TestMakespanEndsAtTheLastLane(t *testing.T) {
	const lanes = 20
	stairs := func(_ subject.Op, lane, _ int) (int64, *record.Failure) { return int64(float64(lane+1) * ms), nil }
	_, l := weigh(t, planned(func(p *lifecycle.Options) { p.Lanes = []int{lanes} }), &fake.Target{Name: "a", Script: stairs})
	const sum = lanes * (lanes + 1) / 2 * ms
	for _, op := range subject.ContainerOps {
		c := cellOf(t, l, lanes, op, "a")
		makespan := lanes*ms + 190
		check.That(t, c[0].Estimate.Value == makespan, "%s: makespan %v, want %v", op, c[0].Estimate.Value, makespan)
		if b := c; !near(lane(b, "parallelism"), sum/makespan, 1e-12) || lane(b, "p50") != 10.5*ms || lane(b, "p90") != 18*ms || lane(b, "p99") != 20*ms || lane(b, "max") != 20*ms || lane(b, "release-skew") != 190 {
			t.Errorf("%s: %+v", op, b)
		}
	}
}
