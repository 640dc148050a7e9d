package cgroupstat

import (
	"errors"
	"fmt"
	"math"

	"github.com/tare-bench/tare/record"
)

// Read reads all of a group that a record holds: Path, Controllers, and what
// follows them there; Charge, Lane and Nested are left alone.
//
// An error comes with what could be read. A part whose file is of no known form
// or may not be read is as if it were not there: Memory is nil unless both its
// usage and its statistics were read. Of an error that wraps ErrGone no figure is
// left.
func (g *Group) Read(into *record.Group) error {
	g.system.mu.Lock()
	defer g.system.mu.Unlock()
	kept := *into
	clear := func() {
		*into = record.Group{Path: g.path, Charge: kept.Charge, Lane: kept.Lane, Nested: kept.Nested, Controllers: []string{}}
	}
	clear()
	if len(g.places) == 0 {
		return fmt.Errorf("cgroup %s: %w", g.path, ErrGone)
	}
	errs := append([]error(nil), g.denied...)
	for _, part := range []func(*record.Group) error{g.readMemory, g.readCPU, g.readThrottled, g.readIO, g.readPids} {
		err := part(into)
		if isGone(err) {
			clear()
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func isGone(err error) bool { return err != nil && errors.Is(err, ErrGone) }

// was notes the controller that a file is of.
func (g *Group) was(into *record.Group, i slot) {
	_, controller := g.places[g.files[i].place].tree.in(i)
	into.Controllers = append(into.Controllers, controller)
}

func (g *Group) readMemory(into *record.Group) error {
	usage, have, err := g.usage()
	if err != nil || !have {
		return err
	}
	var s stats
	if err := g.stat(&s, keys); err != nil {
		return err
	}
	m := &record.GroupMemory{
		Usage: usage, Anon: s[anon], File: s[fileCache], Mapped: s[mapped], Shmem: s[shmem], Kernel: s[kernel],
		Slab: s[slab], Stacks: s[stacks], PageTables: s[tables] + s[sectables], Percpu: s[percpu], Sock: s[sock],
		Swap: s[swap], InactiveFile: s[inactive],
	}
	var errs []error
	for _, f := range []struct {
		slot  slot
		to    *int64
		parse func([]byte) (int64, error)
	}{
		{memoryPeak, &m.Peak, amount},
		{memoryLimit, &m.Limit, limit},
		{memoryKernel, &m.Kernel, amount},
		{memorySock, &m.Sock, amount},
		{memorySwap, &m.Swap, amount},
	} {
		b, err := g.bytes(f.slot)
		if err == nil && b != nil {
			var n int64
			if n, err = f.parse(b); err == nil {
				*f.to = n
			} else {
				err = g.fault(f.slot, err)
			}
		}
		if isGone(err) {
			return err
		}
		errs = append(errs, err)
	}
	into.Memory = m
	g.was(into, memoryUsage)
	return errors.Join(errs...)
}

func (g *Group) readCPU(into *record.Group) error {
	var c cpuTime
	if err := g.cpu(&c); err != nil || !c.have {
		return err
	}
	into.CPU, into.Throttled = &c.used, c.throttled
	g.was(into, cpuUsage)
	return nil
}

// readThrottled reads the cpu.stat of version 1, whose throttled_time is in ns.
func (g *Group) readThrottled(into *record.Group) error {
	b, err := g.bytes(cpuThrottled)
	if err != nil || b == nil {
		return err
	}
	n, _ := keyed(b, "throttled_time") // not there without bandwidth control
	if n < 0 {
		return g.fault(cpuThrottled, malformed("a line throttled_time", b))
	}
	into.Throttled = n
	g.was(into, cpuThrottled)
	return nil
}

func (g *Group) readIO(into *record.Group) error {
	b, err := g.bytes(ioBytes)
	if err != nil || b == nil {
		return err
	}
	r, w, err := transfers(b, g.version(ioBytes), g.system.counts)
	if err != nil {
		return g.fault(ioBytes, err)
	}
	into.ReadBytes, into.WriteBytes = r, w
	g.was(into, ioBytes)
	return nil
}

func (g *Group) readPids(into *record.Group) error {
	b, err := g.bytes(pidsCurrent)
	if err != nil || b == nil {
		return err
	}
	n, ok := number(b)
	if !ok || n > math.MaxInt32 {
		return g.fault(pidsCurrent, malformed("a number of processes", b))
	}
	into.Pids = n
	g.was(into, pidsCurrent)
	return nil
}
