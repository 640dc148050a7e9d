// Package top shows what runs on a node by sandbox and role, live or once: what
// every container and pod uses of CPU and memory, which cgroups are charged for
// it, and what stands beside it and is charged elsewhere. It asks no engine, and
// needs nothing of tare to be running.
//
// A [collector] finds the sandboxes from time to time, as package attribution tells
// who is who for every command, and reads their cgroups and the processes beside them
// at every tick. It makes a [view], which the rest of the package shows.
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

// config says what is read.
type config struct {
	Root machine.Root
	// Full: every process of every sandbox at every tick, with its PSS, and every
	// group in full. It is for few ticks.
	Full bool
	// PSS: the memory of processes beside their sandboxes by smaps_rollup, whenever
	// sandboxes are looked for. The kernel walks their page tables for it.
	PSS bool
}

// collector reads a machine. It is for one goroutine.
type collector struct {
	cfg    config
	now    func() time.Time
	reader attribution.Reader
	system *cgroupstat.System
	node   *machineReader

	boxes     []*box
	groups    map[string]*group // by path
	processes map[int]*process  // by pid

	ticks  uint64
	last   time.Time
	search search
	lost   record.Problems // at this tick
}

// open finds the hierarchies of cgroups. The error says why there is nothing to
// read.
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

// idle is how long the kinds of memory of a group that does nothing are taken to
// be what they were.
const idle = 3 * time.Second

// Close gives back all descriptors.
func (c *collector) Close() {
	for _, g := range c.groups {
		g.g.Close()
	}
	c.system.Close()
	c.node.close()
}

// Tick reads what there is now, with the roles of the sandboxes whose keys are
// expanded. Rates are over the time since the tick before, and unknown at the first.
// The error is for a machine that cannot be read at all and for ctx's end.
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
			if m := &b.members[i]; every || m.beside || m.billedBeside {
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

// process is one whose CPU time and memory are read: one beside its sandbox, or one of a
// sandbox whose roles are shown.
type process struct {
	id        procs.ID
	tick      uint64 // when it was read last
	gone      bool
	cpu, vcpu counter // ns; that of vCPUs is in that of the process
	rss, pss  Maybe
}

// look reads a process, once a tick.
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
	if p.tick != c.ticks-1 { // what it used in between is of no interval
		p.cpu.lost()
		p.vcpu.lost()
	}
	p.tick = c.ticks
	read := c.reader.Look
	if c.cfg.Full || c.cfg.PSS && m.beside && c.search.tick == c.ticks {
		read = c.reader.Process
		p.pss = Maybe{}
	}
	use, err := read(m.Member, &c.lost)
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
		c.lost.Note(fmt.Sprintf("process %d: its CPU time went back", m.Pid))
	}
	p.vcpu.next(use.VCPU, at)
}
