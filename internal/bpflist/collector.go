package bpflist

import (
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// collector makes views. It is for one goroutine.
type collector struct {
	meter  *bpfstat.Meter
	filter bpfstat.Filter
	cpus   int

	listing   *bpfstat.Listing // the last
	before    *reading
	described time.Time
	took      time.Duration // by the last description
	problems  []string      // of it
}

func newCollector(m *bpfstat.Meter, f bpfstat.Filter) (*collector, error) {
	cpus, err := machine.Root("").CPUs()
	return &collector{meter: m, filter: f, cpus: cpus}, err
}

// chooses tells whether a filter leaves anything out.
func chooses(f *bpfstat.Filter) bool {
	return f.Kmesh || len(f.Names)+len(f.Pins)+len(f.Owners)+len(f.Cgroups)+len(f.IDs) > 0
}

// look lists what there is now, and says what it did since the look before.
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
		l.Problems = append(l.Problems, c.problems...)
	}
	gone, last := c.went(l)
	v := newView(l, gone, last, c.before, c.cpus)
	v.Time = time.Now()
	if len(l.Programs) == 0 && chooses(&c.filter) {
		all, err := c.meter.List(bpfstat.Filter{})
		if err != nil {
			return nil, err
		}
		v.loaded = len(all.Programs)
	}
	now := readingOf(l.At, l.Counters)
	c.listing, c.before = l, &now
	return v, nil
}

// went are the programs of the look before that are not there any more, with their
// last counters.
func (c *collector) went(l *bpfstat.Listing) (programs []record.Program, counters []bpfstat.Counters) {
	if c.listing == nil {
		return nil, nil
	}
	for _, last := range l.Went {
		at := slices.IndexFunc(c.listing.Counters, func(b bpfstat.Counters) bool { return b.ID == last.ID })
		if at >= 0 {
			programs, counters = append(programs, c.listing.Programs[at]), append(counters, last)
		}
	}
	return programs, counters
}

// How often programs are described anew: where they are attached and pinned, who
// holds them, and what they occupy. It is a walk over all processes, and takes at
// most this share of the time.
const (
	describeEvery = 10 * time.Second
	describeShare = 1000
	changedShare  = 100 // where programs came or went
)

func (c *collector) due(changed bool) bool {
	if c.listing == nil {
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
	c.problems = slices.Clone(l.Problems[had:])
	return err
}
