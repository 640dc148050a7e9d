package lifecycle

import (
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// times are those of one operation on one target.
type times struct {
	target         *record.Target
	op             setting.Op
	released       int  // operations
	first, without bool // whether operations that succeeded have the first instruction, or lack it
	by             map[record.Stamp]stat.Rounds
}

// timesOf begins with some batches.
func timesOf(target *record.Target, op string, batches []*record.Batch) *times {
	t := &times{target: target, op: setting.Op(op), by: map[record.Stamp]stat.Rounds{}}
	for _, b := range batches {
		t.add(b)
	}
	return t
}

func (t *times) add(b *record.Batch) {
	_, total := Outcomes(b)
	t.released += total
	for i := range b.Samples {
		if s := &b.Samples[i]; s.Failure == nil {
			t.first, t.without = t.first || s.First > 0, t.without || s.First <= 0
		}
	}
	for _, stamp := range record.Stamps {
		if v, ok := span(b, stamp); ok && whole(b) {
			if t.by[stamp] == nil {
				t.by[stamp] = stat.Rounds{}
			}
			t.by[stamp][b.Round] = v
		}
	}
}

// whole reports whether no lane failed and none is missing.
func whole(b *record.Batch) bool {
	failed, total := Outcomes(b)
	return failed == 0 && total == len(b.Samples) && total == b.Lanes
}

// guestClock is record.Target.Clock of a workload that has a clock of its own.
const guestClock = "guest"

// done is the stamp that ends the time of an operation. A call of start or run may
// return before or after the workload runs, so it is the first instruction if every
// operation that succeeded has it, and the definition's stamp if not.
func (t *times) done() record.Stamp {
	done := t.called()
	if done == record.StampReturned && t.target.Clock != guestClock && (t.op == setting.Start || t.op == setting.Run) && t.first && !t.without {
		return record.StampFirst
	}
	return done
}

// called is the stamp that the definition names.
func (t *times) called() record.Stamp { return t.target.Operations[string(t.op)].Done }

// span is the time to a stamp: a lane's own latency where there is one lane,
// from the release to the last lane's stamp where there are more.
func span(b *record.Batch, stamp record.Stamp) (float64, bool) {
	if len(b.Samples) == 0 {
		return 0, false
	}
	if b.Lanes == 1 {
		d, ok := b.Samples[0].Latency(stamp)
		return float64(d), ok
	}
	var last int64
	for i := range b.Samples {
		t, ok := b.Samples[i].Time(stamp)
		if !ok || b.Samples[i].Failure != nil {
			return 0, false
		}
		last = max(last, t)
	}
	return float64(last - b.Released), true
}

// Intervals follow how narrow the intervals of a table's medians and of its comparisons
// become, batch by batch: a run that adds rounds until they are narrow enough need not
// judge all of its record after each. They are stricter than those of the report, see
// [stat.StopConfidence].
type Intervals struct {
	baseline string
	all      []*times
}

// NewIntervals begins to follow the operations at one number of lanes.
func NewIntervals(targets []record.Target, o *Options) *Intervals {
	v := &Intervals{baseline: instrument.Baseline(o.Baseline, targets)}
	for _, op := range o.Ops {
		for i := range targets {
			if Absent(&targets[i], op) == "" {
				v.all = append(v.all, timesOf(&targets[i], string(op), nil))
			}
		}
	}
	return v
}

// Add takes a measured batch.
func (v *Intervals) Add(b *record.Batch) {
	for _, t := range v.all {
		if t.target.Name == b.Target && string(t.op) == b.Op {
			t.add(b)
		}
	}
}

// Widest is the widest interval, as a share of its median or, of a comparison, of the
// baseline, and where it is. Infinite
// while an interval is not known. The targets that are named to be left out do not
// count, and neither does an operation that never succeeded, unless there is nothing
// else: more rounds would not help either.
func (v *Intervals) Widest(leftOut ...string) (worst float64, where string) {
	failed := ""
	for _, t := range v.all {
		name, stamp := t.target.Name, t.done()
		at := name + " " + string(t.op)
		switch {
		case t.released == 0 || slices.Contains(leftOut, name):
			continue
		case len(t.by[stamp]) == 0:
			failed = at
			continue
		}
		if p := stat.SummarizeRounds(figure.Ordered(t.by[stamp]), stat.StopConfidence).Precision(); p >= worst {
			worst, where = p, at
		}
		for _, base := range v.all {
			if base.target.Name != v.baseline || base.op != t.op || base == t || slices.Contains(leftOut, v.baseline) {
				continue
			}
			with, stamp := base.done(), stamp
			if (with == record.StampFirst) != (stamp == record.StampFirst) { // as the report compares them
				with, stamp = base.called(), t.called()
			}
			if len(base.by[with]) == 0 || len(t.by[stamp]) == 0 {
				continue
			}
			if p := stat.ShiftPrecision(base.by[with], t.by[stamp], stat.StopConfidence); p >= worst {
				worst, where = p, at+" vs "+v.baseline
			}
		}
	}
	if where == "" && failed != "" {
		return math.Inf(1), failed
	}
	return worst, where
}
