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

// Intervals follow how narrow the intervals of a table's medians and of its comparisons
// become, batch by batch: a run that adds rounds until they are narrow enough need not
// judge all of its record after each. They are stricter than those of the report, see
// [stat.StopConfidence].
type Intervals struct {
	targets  []record.Target
	ops      []setting.Op
	baseline string
	cells    map[[2]string]*followed // by target and operation
}

// followed is what counts of a cell so far.
type followed struct {
	released int // operations
	values   map[record.Stamp]stat.Rounds
	unlike   bool // a batch lacks the first instruction, or the operation does not end with it
}

// NewIntervals begins to follow the operations at one number of lanes.
func NewIntervals(targets []record.Target, o *Options) *Intervals {
	return &Intervals{targets, o.Ops, instrument.Baseline(o.Baseline, targets), map[[2]string]*followed{}}
}

// Add takes a measured batch.
func (v *Intervals) Add(b *record.Batch) {
	key := [2]string{b.Target, b.Op}
	if v.cells[key] == nil {
		v.cells[key] = &followed{values: map[record.Stamp]stat.Rounds{}}
	}
	c := v.cells[key]
	i := slices.IndexFunc(v.targets, func(t record.Target) bool { return t.Name == b.Target })
	whole := len(b.Samples) == b.Lanes
	for j := range b.Samples {
		f := b.Samples[j].Failure
		whole = whole && f == nil
		if f == nil || f.Kind != record.FailInterrupted {
			c.released++
		}
	}
	if i < 0 || !whole {
		return
	}
	done := v.targets[i].Operations[b.Op].Done
	c.unlike = c.unlike || headline(&v.targets[i], setting.Op(b.Op), b) != record.StampFirst
	for _, stamp := range []record.Stamp{done, record.StampFirst} {
		if value, ok := span(b, stamp); ok {
			if c.values[stamp] == nil {
				c.values[stamp] = stat.Rounds{}
			}
			c.values[stamp][b.Round] = value
		}
	}
}

// stamp is the one that ends the operation on a target, see [headline].
func (c *followed) stamp(t *record.Target, op setting.Op) record.Stamp {
	if c.unlike {
		return t.Operations[string(op)].Done
	}
	return record.StampFirst
}

// Widest is the widest interval, as a share of its median or, of a comparison, of the
// baseline, and where it is. Infinite
// while an interval is not known. The targets that are named to be left out do not
// count, and neither does an operation that never succeeded, unless there is nothing
// else: more rounds would not help either.
func (v *Intervals) Widest(leftOut ...string) (worst float64, where string) {
	failed := ""
	for _, op := range v.ops {
		for i := range v.targets {
			t := &v.targets[i]
			c := v.cells[[2]string{t.Name, string(op)}]
			if c == nil || c.released == 0 || slices.Contains(leftOut, t.Name) || Absent(t, op) != "" {
				continue
			}
			stamp := c.stamp(t, op)
			if len(c.values[stamp]) == 0 {
				failed = t.Name + " " + string(op)
				continue
			}
			if p := stat.SummarizeRounds(figure.Ordered(c.values[stamp]), stat.StopConfidence).Precision(); p >= worst {
				worst, where = p, t.Name+" "+string(op)
			}
			base := v.cells[[2]string{v.baseline, string(op)}]
			at := slices.IndexFunc(v.targets, func(t record.Target) bool { return t.Name == v.baseline })
			if t.Name == v.baseline || base == nil || at < 0 || slices.Contains(leftOut, v.baseline) {
				continue
			}
			with := base.stamp(&v.targets[at], op)
			if (with == record.StampFirst) != (stamp == record.StampFirst) { // as the report compares them
				with, stamp = v.targets[at].Operations[string(op)].Done, t.Operations[string(op)].Done
			}
			if len(base.values[with]) == 0 || len(c.values[stamp]) == 0 {
				continue
			}
			if p := stat.ShiftPrecision(base.values[with], c.values[stamp], stat.StopConfidence); p >= worst {
				worst, where = p, t.Name+" "+string(op)+" vs "+v.baseline
			}
		}
	}
	if where == "" && failed != "" {
		return math.Inf(1), failed
	}
	return worst, where
}
