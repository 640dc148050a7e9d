package top

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroupstat"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// group is an open cgroup of a sandbox.
type group struct {
	path string
	g    *cgroupstat.Group
	gone bool

	sample cgroupstat.Sample
	cpu    counter // ns

	fullAt      time.Time // when the fields below were read; 0: never
	read, write counter   // bytes
	haveIO      bool
	limit       int64 // bytes, 0: none
}

// memory returns the memory of the group without page cache: anonymous, shared and kernel
// memory. Usage is read a moment before its parts, so the difference can be negative.
func (g *group) memory() Maybe {
	return Maybe{float64(max(0, g.sample.Usage-g.sample.File)), !g.gone && g.sample.HaveMemory}
}

func (g *group) cache() Maybe {
	return Maybe{float64(g.sample.File), !g.gone && g.sample.HaveMemory}
}

// group returns the open group of a path, or nil if it is unreadable.
func (c *collector) group(path string) *group {
	if g := c.groups[path]; g != nil && !g.gone {
		return g
	}
	opened, err := c.system.Group(path)
	if err != nil {
		c.without(err)
		return nil
	}
	g := &group{path: path, g: opened}
	c.groups[path] = g
	return g
}

// without counts a failed reading of a group, and reports whether the group is gone.
func (c *collector) without(err error) (gone bool) {
	if gone = errors.Is(err, cgroupstat.ErrGone); gone {
		c.lost.Gone++
	} else {
		procs.Count(&c.lost, err)
	}
	return gone
}

// atOnce is the number of groups read in full per tick. Each takes about 70 µs, mostly
// for opening files.
const atOnce = 32

// readGroups samples all groups. It also reads in full the new groups and those whose
// full reading is oldest.
func (c *collector) readGroups() {
	list := make([]*group, 0, len(c.groups))
	for _, g := range c.groups {
		if !g.gone {
			c.sample(g)
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *group) int { return a.fullAt.Compare(b.fullAt) })
	for i, g := range list {
		if c.cfg.Full || i < atOnce || g.fullAt.IsZero() {
			c.readFully(g)
		}
	}
}

// keep reports whether a group still exists after an error.
func (c *collector) keep(g *group, err error) bool {
	if err == nil || !c.without(err) {
		return true
	}
	g.gone, c.search.stale = true, true
	g.g.Close()
	return false
}

func (c *collector) sample(g *group) {
	switch err := g.g.Sample(&g.sample); {
	case !c.keep(g, err):
	case !g.sample.HaveCPU:
		g.cpu.lost()
	case g.cpu.next(g.sample.CPU, c.now()):
		c.lost.Backwards++
		c.lost.Note(fmt.Sprintf("cgroup %s: its CPU time decreased", g.path))
	}
}

// readFully reads I/O and the limit, which samples lack.
func (c *collector) readFully(g *group) {
	var r record.Group
	if g.gone || !c.keep(g, g.g.Read(&r)) {
		return
	}
	g.fullAt, g.limit = c.now(), 0
	if r.Memory != nil {
		g.limit = r.Memory.Limit
	}
	g.haveIO = slices.Contains(r.Controllers, "blkio") || slices.Contains(r.Controllers, "io")
	if !g.haveIO {
		g.read.lost()
		g.write.lost()
		return
	}
	if back := g.read.next(r.ReadBytes, g.fullAt); g.write.next(r.WriteBytes, g.fullAt) || back {
		c.lost.Backwards++
		c.lost.Note(fmt.Sprintf("cgroup %s: its count of I/O decreased", g.path))
	}
}
