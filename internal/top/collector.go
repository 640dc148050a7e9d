// Package top shows what runs on a node by sandbox and role, live or once: what
// every container and pod uses of CPU and memory, which cgroups are charged for
// it, and what stands beside it and is charged elsewhere. It asks no engine, and
// needs nothing of tare to be running.
//
// A [Collector] finds the sandboxes (package census) from time to time and
// samples their cgroups (package group) and the processes beside them at every
// tick. It makes a [View], which [View.WriteJSON] prints for programs and the rest
// of the package for people.
package top

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/cgroupstat"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/record"
)

// Config says what is read.
type Config struct {
	Root machine.Root
	// Full: every process of every sandbox at every tick, with its PSS, and every
	// group in full. It is for few ticks.
	Full bool
	// PSS: the memory of processes beside their sandboxes by smaps_rollup, at
	// every survey. The kernel walks their page tables for it.
	PSS bool
}

// Collector reads a machine. It is for one goroutine.
type Collector struct {
	cfg    Config
	now    func() time.Time
	reader attribution.Reader
	system *cgroupstat.System
	node   *nodeMeter

	boxes     []*box
	groups    map[string]*kept // by path
	turn      []*kept          // of them, in the order of full readings
	processes map[int]*watched // by pid
	expanded  map[string]bool  // sandboxes whose roles are read, by key

	ticks       uint64
	last        time.Time
	survey      survey
	stale       bool // something that was there has gone
	buffer      []byte
	descriptors int // of processes
	most        int

	lost    record.Problems // at ticks, since the beginning
	refused map[string]bool // paths that were denied
}

// Open finds the hierarchies of cgroups. The error says why there is nothing to
// read.
func Open(cfg Config) (*Collector, error) {
	system, err := cgroupstat.Open(cfg.Root)
	if err != nil {
		return nil, err
	}
	if !cfg.Full {
		system.SkipIdle(idle)
	}
	c := &Collector{
		cfg: cfg, now: time.Now, reader: attribution.Reader{Root: cfg.Root}, system: system,
		groups: map[string]*kept{}, processes: map[int]*watched{}, expanded: map[string]bool{},
		buffer: make([]byte, 4<<10), most: allowance(), refused: map[string]bool{},
	}
	c.node = openNode(cfg.Root)
	return c, nil
}

// idle is how long the kinds of memory of a group that does nothing are taken to
// be what they were.
const idle = 3 * time.Second

// Close gives back all descriptors.
func (c *Collector) Close() {
	for _, k := range c.groups {
		k.g.Close()
	}
	for _, w := range c.processes {
		c.forget(w)
	}
	c.system.Close()
	c.node.close()
}

// Expand says whether the roles of a sandbox are to be read.
func (c *Collector) Expand(key string, roles bool) {
	if roles {
		c.expanded[key] = true
	} else {
		delete(c.expanded, key)
	}
}

// Tick reads what there is now. Rates are over the time since the tick before,
// and unknown at the first. The error is for a machine that cannot be read at all
// and for ctx's end.
func (c *Collector) Tick(ctx context.Context) (*View, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.ticks++
	if c.due() {
		if err := c.find(ctx); err != nil {
			return nil, fmt.Errorf("find the sandboxes: %w", err)
		}
	}
	v := &View{Schema: SchemaVersion, Time: c.now(), unprivileged: os.Geteuid() != 0}
	if !c.last.IsZero() {
		v.Interval = v.Time.Sub(c.last).Seconds()
	}
	c.last = v.Time
	for _, k := range c.groups {
		if !k.gone {
			c.tick(k)
		}
	}
	c.turns()
	for _, b := range c.boxes {
		c.lookAt(b)
	}
	c.node.read(v)
	c.view(v)
	return v, ctx.Err()
}

// lookAt reads the processes of a sandbox that are watched.
func (c *Collector) lookAt(b *box) {
	every := c.cfg.Full || c.expanded[b.key]
	for i := range b.members {
		m := &b.members[i]
		if m.w == nil && (every || m.beside || m.billedBeside) {
			c.follow(b, m)
		}
		if m.w != nil {
			c.look(m.w)
		}
		if m.w != nil && c.cfg.Full && !m.w.gone {
			c.pss(m)
		}
	}
}

// pss reads a process's share of memory.
func (c *Collector) pss(m *member) {
	var problems record.Problems
	p, err := c.reader.Process(m.Member, &problems)
	m.w.pss = Maybe[int64]{}
	if err == nil && p.Read {
		m.w.pss = known(p.PSSAnon + p.PSSFile + p.PSSShmem)
	}
	if problems.Denied > 0 {
		name := c.proc(m.Pid, "smaps_rollup")
		c.denied(name, &os.PathError{Op: "read", Path: name, Err: os.ErrPermission})
	}
	c.lost.Gone += problems.Gone
	c.lost.Reused += problems.Reused
	c.lost.Broken += problems.Broken
}

// processCPU is the CPU time (ns) of this process.
func processCPU() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) // all kernels have it
	return t.Nano()
}

// nodeMeter reads the machine and this process.
type nodeMeter struct {
	root  machine.Root
	fast  *nodestat.Fast
	state nodestat.Reader
	total Maybe[int64]
	cpus  int

	read1, write1 counter
	own           counter
	problem       string
}

func openNode(root machine.Root) *nodeMeter {
	n := &nodeMeter{root: root, state: nodestat.Reader{Root: root}}
	fast, err := nodestat.OpenFast(root)
	if err != nil {
		n.problem = err.Error()
	}
	n.fast = fast
	if m, err := root.Memory(); err == nil {
		n.total = known(m.Total)
	}
	n.cpus, _ = root.CPUs()
	return n
}

func (n *nodeMeter) close() {
	if n.fast != nil {
		n.fast.Close()
	}
}

func (n *nodeMeter) read(v *View) {
	v.Node.CPUs, v.Node.Total = n.cpus, n.total
	problem := n.problem
	if n.fast != nil {
		var t nodestat.Tick
		if err := n.fast.Read(&t); err != nil {
			problem = err.Error()
		}
		have := func(x int64) Maybe[int64] { return Maybe[int64]{x, x >= 0} }
		v.Node.Used, v.Node.Available, v.Node.Cache = have(t.Used), have(t.Available), have(t.Cache)
		v.Node.Load1 = Maybe[float64]{float64(t.Load1000) / 1000, t.Load1000 >= 0}
		for _, one := range []struct {
			c  *counter
			v  int64
			to *Maybe[float64]
		}{{&n.read1, t.Read, &v.Node.Read}, {&n.write1, t.Write, &v.Node.Write}} {
			if one.v < 0 {
				one.c.lost()
				continue
			}
			one.c.next(one.v, time.Now())
			*one.to = one.c.rate
		}
	}
	state, err := n.state.Read()
	if err != nil {
		problem = err.Error()
	}
	if err == nil && state.Known {
		v.Node.CPU, v.Node.Steal = known(state.Busy*float64(n.cpus)), known(state.Steal*float64(n.cpus))
		if state.HavePSI {
			v.Node.PSICPU, v.Node.PSIMemory, v.Node.PSIIO = known(state.PSICPU), known(state.PSIMemory), known(state.PSIIO)
		}
	}
	if problem != "" {
		v.Problems.Broken++
		example(&v.Problems, "%s", problem)
	}
	n.own.next(processCPU(), time.Now())
	v.Own.CPU = n.own.cpus()
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if pages, err := resident(b); err == nil {
			v.Own.Memory = known(pages * pageSize)
		}
	}
}
