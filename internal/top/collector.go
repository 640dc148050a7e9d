// Package top shows the containers and pods of a node, live or once: CPU and memory by role,
// the cgroups that are charged, and processes that are charged to other groups. It does not
// use engines or other processes of tare.
//
// A [collector] discovers the sandboxes periodically with package attribution. At every tick it
// reads their cgroups and the processes charged elsewhere, and makes a [view]. The rest of the
// package shows views.
package top

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/cgroupstat"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// config defines what a collector reads.
type config struct {
	Root machine.Root
	// Full reads every process of every sandbox with its PSS, and every group in full, at
	// every tick. Use it for few ticks.
	Full bool
	// PSS reads smaps_rollup of processes charged elsewhere at every discovery. The kernel
	// walks their page tables for it.
	PSS bool
}

// collector reads a machine. One goroutine may use it.
type collector struct {
	cfg    config
	now    func() time.Time
	reader attribution.Reader
	system *cgroupstat.System
	node   *machineReader

	boxes     []*box
	names     map[string]string // of the engines, by key of the sandbox; "": unknown
	groups    map[string]*group // by path
	processes map[int]*process  // by pid

	ticks  uint64
	last   time.Time
	search search
	lost   record.Problems // at this tick
}

// open returns a collector. It fails if no cgroup hierarchy is readable.
func open(cfg config) (*collector, error) {
	system, err := cgroupstat.Open(cfg.Root)
	if err != nil {
		return nil, err
	}
	if !cfg.Full {
		system.SkipIdle(idle)
	}
	return &collector{
		cfg: cfg, now: time.Now, reader: attribution.Reader{Root: cfg.Root}, system: system, node: openNode(cfg.Root),
		groups: map[string]*group{}, processes: map[int]*process{},
	}, nil
}

const idle = 3 * time.Second // see cgroupstat.System.SkipIdle

// Close closes all descriptors.
func (c *collector) Close() {
	for _, g := range c.groups {
		g.g.Close()
	}
	c.system.Close()
	c.node.fast.Close()
}

// Tick reads the current state, with roles for the expanded sandboxes. Rates are over the time
// since the last tick, and unknown at the first. It fails if the machine is unreadable or ctx
// ends.
func (c *collector) Tick(ctx context.Context, expanded map[string]bool) (*view, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.ticks++
	c.lost = record.Problems{}
	if c.due() {
		if err := c.find(ctx); err != nil {
			return nil, fmt.Errorf("find the sandboxes: %w", err)
		}
	}
	v := &view{Schema: schemaVersion, Time: c.now(), unprivileged: os.Geteuid() != 0}
	if !c.last.IsZero() {
		v.Interval = v.Time.Sub(c.last).Seconds()
	}
	c.last = v.Time
	c.readGroups()
	c.node.read(v, v.Time)
	v.Sandboxes = make([]Sandbox, 0, len(c.boxes))
	for _, b := range c.boxes {
		every := c.cfg.Full || expanded[b.key]
		for i := range b.members {
			if m := &b.members[i]; every || m.memoryElsewhere || m.cpuElsewhere {
				c.look(m)
			}
		}
		if b.ended() {
			continue
		}
		s := b.sandbox()
		if every {
			s.Roles = b.roles()
		}
		v.Sandboxes = append(v.Sandboxes, s)
	}
	v.Count, v.Sum = len(v.Sandboxes), together(v.Sandboxes)
	v.Problems.Add(&c.search.problems)
	v.Problems.Add(&c.lost)
	return v, ctx.Err()
}

// process is a process that is read: one charged elsewhere, or one of an expanded sandbox.
type process struct {
	id        procs.ID
	tick      uint64 // of the last reading
	gone      bool
	cpu, vcpu counter // ns; cpu includes vcpu
	rss, pss  Maybe
}

// look reads a process once per tick.
func (c *collector) look(m *member) {
	id := procs.ID{Pid: m.Pid, Start: m.Start}
	p := c.processes[m.Pid]
	if p == nil || p.id != id {
		before := p
		p = &process{id: id, tick: c.ticks - 1}
		if before != nil && !before.gone {
			p.cpu.wrong = true
			c.lost.Reused++
			c.lost.Note(fmt.Sprintf("process %d: another has its pid", m.Pid))
		}
		c.processes[m.Pid] = p
	}
	m.p = p
	if p.gone || p.tick == c.ticks {
		return
	}
	if p.tick != c.ticks-1 { // the interval is longer than a tick
		p.cpu.lost()
		p.vcpu.lost()
	}
	p.tick = c.ticks
	full := c.cfg.Full || c.cfg.PSS && m.memoryElsewhere && c.search.tick == c.ticks
	if full {
		p.pss = Maybe{}
	}
	use, err := c.reader.Process(m.Member, full, &c.lost)
	if err != nil {
		p.gone, c.search.stale = true, true
		return
	}
	at := c.now()
	p.rss = known(use.RSS)
	if use.Read {
		p.pss = known(use.PSSAnon + use.PSSFile + use.PSSShmem)
	}
	if p.cpu.next(use.CPU, at) {
		c.lost.Backwards++
		c.lost.Note(fmt.Sprintf("process %d: its CPU time decreased", m.Pid))
	}
	p.vcpu.next(use.VCPU, at)
}
