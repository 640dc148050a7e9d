package top

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroupstat"
	"github.com/tare-bench/tare/record"
)

// kept is a cgroup of a sandbox's own, held open.
type kept struct {
	path string
	g    *cgroupstat.Group
	used bool // by a sandbox of the latest survey
	gone bool

	sample cgroupstat.Sample
	cpu    counter // ns

	full        bool // what follows was read
	fullAt      time.Time
	read, write counter // bytes
	haveIO      bool
	limit       int64 // bytes, 0: none
}

// memory is what the group is charged for without page cache: anonymous, shared
// and the kernel's. Usage is read a moment before its parts, and may be behind.
func (k *kept) memory() Maybe[int64] {
	if k.gone || !k.sample.HaveMemory {
		return Maybe[int64]{}
	}
	return known(max(0, k.sample.Usage-k.sample.File))
}

func (k *kept) cache() Maybe[int64] {
	if k.gone || !k.sample.HaveMemory {
		return Maybe[int64]{}
	}
	return known(k.sample.File)
}

// tick samples the group.
func (c *Collector) tick(k *kept) {
	err := k.g.Sample(&k.sample)
	if err != nil && c.lostGroup(k, err) {
		return
	}
	if !k.sample.HaveCPU {
		k.cpu.lost()
		return
	}
	if k.cpu.next(k.sample.CPU, c.now()) {
		c.lost.Backwards++
		example(&c.lost, "cgroup %s: its CPU time went back", k.path)
	}
}

// whole reads what a tick does not: I/O and the limit.
func (c *Collector) whole(k *kept) {
	var r record.Group
	if err := k.g.Read(&r); err != nil && c.lostGroup(k, err) {
		return
	}
	k.full, k.fullAt, k.limit = true, c.now(), 0
	if r.Memory != nil {
		k.limit = r.Memory.Limit
	}
	k.haveIO = slices.Contains(r.Controllers, "blkio") || slices.Contains(r.Controllers, "io")
	if !k.haveIO {
		k.read.lost()
		k.write.lost()
		return
	}
	for _, one := range []struct {
		counter *counter
		v       int64
	}{{&k.read, r.ReadBytes}, {&k.write, r.WriteBytes}} {
		if one.counter.next(one.v, k.fullAt) {
			c.lost.Backwards++
			example(&c.lost, "cgroup %s: its count of I/O went back", k.path)
		}
	}
}

// lostGroup counts an error of a group, and tells whether the group is gone.
func (c *Collector) lostGroup(k *kept, err error) bool {
	switch {
	case errors.Is(err, cgroupstat.ErrGone):
		c.lost.Gone++
		k.gone, c.stale = true, true
		k.g.Close()
		return true
	case errors.Is(err, os.ErrPermission):
		c.denied(k.path, err)
	default:
		c.lost.Broken++
		example(&c.lost, "%v", err)
	}
	return false
}

// denied counts each path once: it will be denied at every tick.
func (c *Collector) denied(path string, err error) {
	if !c.refused[path] {
		c.refused[path] = true
		c.lost.Denied++
		example(&c.lost, "%v", err)
	}
}

// group returns the group of a path, opened once; nil where it cannot be read.
func (c *Collector) group(path string) *kept {
	if k := c.groups[path]; k != nil && !k.gone {
		k.used = true
		return k
	}
	g, err := c.system.Group(path)
	switch {
	case err == nil:
		k := &kept{path: path, g: g, used: true}
		c.groups[path] = k
		return k
	case errors.Is(err, cgroupstat.ErrGone):
		c.lost.Gone++
	case errors.Is(err, os.ErrPermission):
		c.denied(path, err)
	default:
		c.lost.Broken++
		example(&c.lost, "%v", err)
	}
	return nil
}

// sweep closes the groups that no sandbox has any more.
func (c *Collector) sweep() {
	for path, k := range c.groups {
		if !k.used {
			k.g.Close()
			delete(c.groups, path)
		}
	}
	c.turn = c.turn[:0]
	for _, k := range c.groups {
		c.turn = append(c.turn, k)
	}
}

// atOnce is how many groups are read in full at a tick once all were read: each
// takes some 70 µs, most of it to open files that are not worth a descriptor.
const atOnce = 32

// turns reads groups in full: those that never were, and of the others some, the
// ones that it is longest ago for.
func (c *Collector) turns() {
	if c.cfg.Full {
		for _, k := range c.turn {
			if !k.gone {
				c.whole(k)
			}
		}
		return
	}
	slices.SortFunc(c.turn, func(a, b *kept) int { return a.fullAt.Compare(b.fullAt) })
	for i, k := range c.turn {
		if k.full && i >= atOnce {
			break
		}
		if !k.gone {
			c.whole(k)
		}
	}
}
