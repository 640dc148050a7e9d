package run_test

import (
	"math"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/fake"
	"github.com/tare-bench/tare/record"
)

func near(got, want, within float64) bool { return math.Abs(got-want) <= within*math.Abs(want) }

func TestConstantLatenciesAreRecoveredExactly(t *testing.T) {
	_, l := weigh(t, planned(func(p *lifecycle.Options) { p.Lanes = []int{1, 20} }), pair(constant(1), constant(2))...)
	for i, name := range []string{"a", "b"} {
		for op, median := range truth {
			latency := median * float64(i+1)
			one := cellOf(t, l, 1, op, name)
			if s := one.Time.Estimate; s.N != 10 || s.Value != latency || !s.Bounded || s.Lo != latency || s.Hi != latency || one.Trimmed.Estimate.Value != latency {
				t.Errorf("%s %s, one lane: %+v", name, op, one)
			}
			if b := one; laneCount(b) != 10 || lane(b, "p50") != latency || lane(b, "max") != latency || lane(b, "release-skew") != 0 || lane(b, "parallelism") != 1 {
				t.Errorf("%s %s, one lane: %+v", name, op, b)
			}
			// The fake starts its lanes 10 ns apart.
			many, makespan := cellOf(t, l, 20, op, name), latency+190
			if s := many.Time.Estimate; s.N != 10 || s.Value != makespan || many.Trimmed.Estimate.Value != makespan {
				t.Errorf("%s %s, 20 lanes: %+v, want %v", name, op, s, makespan)
			}
			b := many
			if laneCount(b) != 200 || lane(b, "p50") != latency || lane(b, "p99") != latency || lane(b, "max") != latency || lane(b, "release-skew") != 190 || skewMax(b) != 190 || !near(lane(b, "parallelism"), 20*latency/makespan, 1e-12) {
				t.Errorf("%s %s, 20 lanes: %+v", name, op, b)
			}
			if one.Time.Failed+many.Time.Failed+one.Lost+many.Lost != 0 || one.Time.Total != 10 || many.Time.Total != 200 {
				t.Errorf("%s %s: %d and %d in all", name, op, one.Time.Total, many.Time.Total)
			}
		}
	}
	for _, op := range subject.ContainerOps {
		if v := cellOf(t, l, 1, op, "b").Time.Versus; v == nil || v.Baseline != "a" || math.Abs(v.Shift.Value-1) > 1e-9 || !v.Different() {
			t.Errorf("%s: twice as long is called %+v", op, v)
		}
	}
}

func TestMakespanIsUpToTheLastLaneAndNeverASum(t *testing.T) {
	const lanes = 20
	stairs := func(_ subject.Op, lane, _ int) (int64, *record.Failure) { return int64(float64(lane+1) * ms), nil }
	_, l := weigh(t, planned(func(p *lifecycle.Options) { p.Lanes = []int{lanes} }), &fake.Target{Name: "a", Script: stairs})
	const sum = lanes * (lanes + 1) / 2 * ms
	for _, op := range subject.ContainerOps {
		c := cellOf(t, l, lanes, op, "a")
		makespan := lanes*ms + 190
		if c.Time.Estimate.Value != makespan {
			t.Errorf("%s: makespan %v, want %v", op, c.Time.Estimate.Value, makespan)
		}
		if b := c; !near(lane(b, "parallelism"), sum/makespan, 1e-12) || lane(b, "p50") != 10.5*ms || lane(b, "p90") != 18*ms || lane(b, "p99") != 20*ms || lane(b, "max") != 20*ms || lane(b, "release-skew") != 190 {
			t.Errorf("%s: %+v", op, b)
		}
	}
}
