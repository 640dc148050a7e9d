package cgroupstat

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Read fills in all fields of a group except Charge, Lane and Nested.
//
// With an error it still fills in the readable parts. Malformed and unreadable files count
// as missing. Memory is nil unless both usage and statistics were read. If the error wraps
// ErrGone, no figure is set.
func (g *Group) Read(into *record.Group) error {
	g.system.mu.Lock()
	defer g.system.mu.Unlock()
	empty := record.Group{Path: g.path, Charge: into.Charge, Lane: into.Lane, Nested: into.Nested, Controllers: []string{}}
	*into = empty
	if len(g.places) == 0 {
		return fmt.Errorf("cgroup %s: %w", g.path, ErrGone)
	}
	errs := slices.Clone(g.denied)
	for _, part := range []func(*record.Group) error{
		g.readMemory, g.reading(cpuUsage, g.times), g.reading(cpuThrottled, throttled), g.reading(ioBytes, g.moved), g.reading(pidsCurrent, tasks),
	} {
		err := part(into)
		if isGone(err) {
			*into = empty
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func isGone(err error) bool { return err != nil && errors.Is(err, ErrGone) }

// addController adds the controller of a file to the group.
func (g *Group) addController(into *record.Group, i slot) {
	_, controller := g.places[g.files[i].place].tree.in(i)
	into.Controllers = append(into.Controllers, controller)
}

func (g *Group) readMemory(into *record.Group) error {
	usage, have, err := g.value(memoryUsage, amount)
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
		n, have, err := g.value(f.slot, f.parse)
		if isGone(err) {
			return err
		}
		if have {
			*f.to = n
		}
		errs = append(errs, err)
	}
	if above := g.limitAbove(); above > 0 && (m.Limit == 0 || above < m.Limit) {
		m.Limit = above
	}
	into.Memory = m
	g.addController(into, memoryUsage)
	return errors.Join(errs...)
}

// limitAbove returns the lowest memory limit of the ancestors, or 0 if none has one. With
// systemd's cgroup driver crun puts a container's processes into a group below the scope
// with the limit. An unreadable group counts as one without a limit.
func (g *Group) limitAbove() (lowest int64) {
	p := &g.places[g.files[memoryUsage].place]
	names, _ := p.tree.in(memoryLimit)
	for up, dir := range p.tree.Upwards(g.path) {
		b, err := g.system.root.Read(path.Join(dir, names[0]), bufferSize)
		if n, bad := limit(b); up != g.path && err == nil && bad == nil && n > 0 && (lowest == 0 || n < lowest) {
			lowest = n
		}
	}
	return lowest
}

func (g *Group) times(b []byte, into *record.Group) error {
	used, throttled, err := cpuTimes(b, g.version(cpuUsage))
	if err == nil {
		into.CPU, into.Throttled = &used, throttled
	}
	return err
}

// reading returns a function that reads an optional file.
func (g *Group) reading(i slot, parse func(b []byte, into *record.Group) error) func(*record.Group) error {
	return func(into *record.Group) error {
		b, err := g.bytes(i)
		if err != nil || b == nil {
			return err
		}
		if err := parse(b, into); errors.Is(err, errUncounted) {
			return nil
		} else if err != nil {
			return g.fault(i, err)
		}
		g.addController(into, i)
		return nil
	}
}

// throttled parses cpu.stat of v1, with throttled_time in ns.
func throttled(b []byte, into *record.Group) error {
	n, _ := keyed(b, "throttled_time") // missing without bandwidth control
	if n < 0 {
		return malformed("a line throttled_time", b)
	}
	into.Throttled = n
	return nil
}

func (g *Group) moved(b []byte, into *record.Group) (err error) {
	if g.version(ioBytes) == 1 && !listsDevices(b) && !g.counted() {
		return errUncounted
	}
	into.ReadBytes, into.WriteBytes, err = transfers(b, g.version(ioBytes), g.system.counts)
	return err
}

func tasks(b []byte, into *record.Group) error {
	n, ok := number(b)
	if !ok || n > math.MaxInt32 {
		return malformed("a number of processes", b)
	}
	into.Pids = n
	return nil
}
