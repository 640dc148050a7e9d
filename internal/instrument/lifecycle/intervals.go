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

// times collects the times of one operation on one target.
type times struct {
	target         *record.Target
	op             setting.Op
	released       int  // number of operations
	first, without bool // whether any successful operation has a first instruction, or lacks one
	by             map[record.Stamp]stat.Rounds
}

// timesOf returns the times of the batches.
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

// whole reports whether all lanes are present and none failed.
func whole(b *record.Batch) bool {
	failed, total := Outcomes(b)
	return failed == 0 && total == len(b.Samples) && total == b.Lanes
}

// guestClock is the value of record.Target.Clock for a workload with its own clock.
const guestClock = "guest"

// done returns the stamp that ends an operation. A start or run call may return before
// or after the workload runs. Such operations therefore end at the first instruction if
// every successful one has it. Otherwise the definition's stamp is used.
func (t *times) done() record.Stamp {
	done := t.called()
	if done == record.StampReturned && t.target.Clock != guestClock && (t.op == setting.Start || t.op == setting.Run) && t.first && !t.without {
		return record.StampFirst
	}
	return done
}

// called returns the stamp in the operation's definition.
func (t *times) called() record.Stamp { return t.target.Operations[string(t.op)].Done }

// span returns the time to a stamp. With one lane it is the lane's own latency. With
// more lanes it is the time from the release to the last lane's stamp.
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

// Intervals tracks the widths of the intervals of a table, for its medians and
// comparisons, batch by batch. A run that adds rounds until they are narrow enough then
// does not have to judge the whole record after each round. The intervals are stricter
// than those of the report; see [stat.StopConfidence].
type Intervals struct {
	baseline string
	all      []*times
}

// NewIntervals returns the intervals of the operations at one number of lanes.
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

// Add adds a measured batch.
func (v *Intervals) Add(b *record.Batch) {
	for _, t := range v.all {
		if t.target.Name == b.Target && string(t.op) == b.Op {
			t.add(b)
		}
	}
}

// Widest returns the width of the widest interval, and its place. The width is relative
// to the median or, for a comparison, to the baseline. It is infinite while an interval
// is unknown. Targets in leftOut do not count. Neither does an operation that never
// succeeded, unless there is nothing else, because more rounds would not help.
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
			if (with == record.StampFirst) != (stamp == record.StampFirst) { // as in the report
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
