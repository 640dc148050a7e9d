package lifecycle

import (
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Intervals follow how narrow the intervals of a table's medians become, batch by batch:
// a run that adds rounds until they are narrow enough need not judge all of its record
// after each.
type Intervals struct {
	targets []record.Target
	ops     []setting.Op
	cells   map[[2]string]*followed // by target and operation
}

// followed is what counts of a cell so far.
type followed struct {
	released int // operations
	values   []float64
}

// NewIntervals begins to follow the operations at one number of lanes.
func NewIntervals(targets []record.Target, ops []setting.Op) *Intervals {
	return &Intervals{targets, ops, map[[2]string]*followed{}}
}

// Add takes a measured batch.
func (v *Intervals) Add(b *record.Batch) {
	key := [2]string{b.Target, b.Op}
	if v.cells[key] == nil {
		v.cells[key] = &followed{}
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
	if value, ok := span(b, v.targets[i].Operations[b.Op].Done); ok {
		c.values = append(c.values, value)
	}
}

// Widest is the widest interval, as a share of its median, and where it is. Infinite
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
			if len(c.values) == 0 {
				failed = t.Name + " " + string(op)
				continue
			}
			if p := figure.MedianOf(c.values).Half(); p >= worst {
				worst, where = p, t.Name+" "+string(op)
			}
		}
	}
	if where == "" && failed != "" {
		return math.Inf(1), failed
	}
	return worst, where
}
