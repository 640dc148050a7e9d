package bpflist

import (
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// collector makes views. It is not safe for concurrent use.
type collector struct {
	meter  *bpfstat.Meter
	filter bpfstat.Filter
	cpus   int
	watch  bool // live view; descriptions may be delayed

	listing   *bpfstat.Listing // previous listing
	described time.Time
	took      time.Duration // duration of the last description
	problems  []string      // of the last description
	loose     []record.Map
}

func newCollector(m *bpfstat.Meter, f bpfstat.Filter) (*collector, error) {
	cpus, err := machine.Root("").CPUs()
	return &collector{meter: m, filter: f, cpus: cpus}, err
}

// look returns the current programs, with rates since the previous call.
func (c *collector) look() (*View, error) {
	l, err := c.meter.List(c.filter)
	if err != nil {
		return nil, err
	}
	changed := c.listing == nil || !slices.EqualFunc(c.listing.Counters, l.Counters, func(a, b bpfstat.Counters) bool { return a.ID == b.ID })
	if c.due(changed) {
		if err := c.describe(l); err != nil {
			return nil, err
		}
	} else {
		l.Problems, l.Loose = append(l.Problems, c.problems...), c.loose
	}
	v := newView(l, c.listing, c.cpus)
	v.Time = time.Now()
	if len(l.Programs) == 0 && !c.filter.Empty() {
		all, err := c.meter.List(bpfstat.Filter{})
		if err != nil {
			return nil, err
		}
		v.loaded = len(all.Programs)
	}
	c.listing = l
	return v, nil
}

// A description (attach points, pins, holders and memory) needs a walk over all
// processes. These constants limit how often descriptions are refreshed, and the share of
// the time that this takes: at most 1/describeShare, or 1/changedShare.
const (
	describeEvery = 10 * time.Second
	describeShare = 1000
	changedShare  = 100 // if the set of programs changed
)

func (c *collector) due(changed bool) bool {
	if c.listing == nil || changed && !c.watch {
		return true
	}
	passed := time.Since(c.described)
	return changed && passed > changedShare*c.took || passed > max(describeEvery, describeShare*c.took)
}

func (c *collector) describe(l *bpfstat.Listing) error {
	begun, had := time.Now(), len(l.Problems)
	err := c.meter.Describe(l)
	c.described = time.Now()
	c.took = c.described.Sub(begun)
	c.problems, c.loose = slices.Clone(l.Problems[had:]), l.Loose
	return err
}
