package bpflist

import (
	"slices"
	"time"

	"github.com/tare-bench/tare/meter/bpf"
	"github.com/tare-bench/tare/meter/machine"
	"github.com/tare-bench/tare/record"
)

// collector makes views. It is for one goroutine.
type collector struct {
	meter  *bpf.Meter
	filter bpf.Filter
	cpus   int

	listing   *bpf.Listing // the last
	before    *reading
	described time.Time
	took      time.Duration // by the last description
	problems  []string      // of it
	counters  []bpf.Counters
}

func newCollector(m *bpf.Meter, f bpf.Filter) (*collector, error) {
	cpus, err := machine.Root("").CPUs()
	return &collector{meter: m, filter: f, cpus: cpus}, err
}

// look lists what there is now, and says what it did since the look before.
func (c *collector) look() (*View, error) {
	gone, last, err := c.last()
	if err != nil {
		return nil, err
	}
	l, err := c.meter.List(c.filter)
	if err != nil {
		return nil, err
	}
	changed := c.listing == nil || !slices.EqualFunc(c.listing.Programs, l.Programs, same)
	c.leftOut(&gone, &last, l)
	if c.due(changed) {
		if err := c.describe(l); err != nil {
			return nil, err
		}
	} else {
		l.Problems = append(l.Problems, c.problems...)
	}
	v := newView(l, gone, last, c.before, c.cpus)
	v.Time = time.Now()
	now := readingOf(l.At, l.Counters)
	c.listing, c.before = l, &now
	return v, nil
}

func same(a, b record.Program) bool { return a.ID == b.ID && a.Tag == b.Tag }

// last reads the counters of all that was there at the look before: its descriptors
// still tell what those did that are gone, which the next listing lets go of.
func (c *collector) last() ([]record.Program, []bpf.Counters, error) {
	if c.listing == nil {
		return nil, nil, nil
	}
	ids := make([]uint32, 0, len(c.listing.Programs))
	for i := range c.listing.Programs {
		ids = append(ids, c.listing.Programs[i].ID)
	}
	var err error
	c.counters, err = c.meter.Counters(ids, c.counters)
	return c.listing.Programs, c.counters, err
}

// leftOut keeps of programs and their last counters those that are not in a listing.
func (c *collector) leftOut(programs *[]record.Program, counters *[]bpf.Counters, l *bpf.Listing) {
	var gone []record.Program
	var last []bpf.Counters
	for i, p := range *programs {
		here := slices.ContainsFunc(l.Programs, func(n record.Program) bool { return n.ID == p.ID })
		if !here && i < len(*counters) && (*counters)[i].ID == p.ID {
			gone, last = append(gone, p), append(last, (*counters)[i])
		}
	}
	*programs, *counters = gone, last
}

// How often programs are described anew: where they are attached and pinned, who
// holds them, and what they occupy. It is a walk over all processes, and takes at
// most this share of the time.
const (
	describeEvery = 10 * time.Second
	describeShare = 500
	changedShare  = 50 // where programs came or went
)

func (c *collector) due(changed bool) bool {
	if c.listing == nil {
		return true
	}
	passed := time.Since(c.described)
	return changed && passed > changedShare*c.took || passed > max(describeEvery, describeShare*c.took)
}

func (c *collector) describe(l *bpf.Listing) error {
	begun, had := time.Now(), len(l.Problems)
	err := c.meter.Describe(l)
	c.described = time.Now()
	c.took = c.described.Sub(begun)
	c.problems = slices.Clone(l.Problems[had:])
	return err
}
