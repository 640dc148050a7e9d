package top

import (
	"context"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// box is a sandbox as the latest survey found it.
type box struct {
	Sandbox
	members []member
	charged []charged
}

// charged is a cgroup of a sandbox's own.
type charged struct {
	*kept
	charge record.Charge
	nested bool // in the figures of another of the same charge
	within bool // of the pod's, below one that is outside
}

// member is a process of a sandbox.
type member struct {
	attribution.Member
	beside       bool // its memory is charged to a group of others
	billedBeside bool // its CPU time is
	w            *watched
}

// survey is when the sandboxes were looked for, and what it took.
type survey struct {
	at       time.Time
	whole    time.Time // when it was more than a comparison
	cost     time.Duration
	count    uint64 // of processes
	seed     maphash.Seed
	sign     uint64
	problems record.Problems // of the pass over /proc
	members  record.Problems // of the last whole one
}

// How often the sandboxes are looked for: sooner when the number of processes
// has changed or something has gone, and never so often that it takes more than an
// eightieth of a CPU.
const (
	soon    = 2 * time.Second
	late    = 5 * time.Second
	latest  = 30 * time.Second // until all is looked at again where no process has changed
	costCap = 80
)

func (c *Collector) due() bool {
	s := &c.survey
	if s.at.IsZero() {
		return true
	}
	passed := c.now().Sub(s.at)
	if passed < max(soon, costCap*s.cost) {
		return false
	}
	return passed >= max(late, costCap*s.cost) || c.stale || c.count() != s.count
}

// count is how many processes there are, as the number of links of /proc tells
// without a look at any of them (proc_root_getattr in fs/proc/root.c). 0: it does
// not tell.
func (c *Collector) count() uint64 {
	var st unix.Stat_t
	if err := unix.Stat(string(c.cfg.Root)+"/proc", &st); err != nil {
		return 0
	}
	return uint64(st.Nlink) //nolint:unconvert // it has 32 bits on arm64
}

// find looks for the sandboxes.
func (c *Collector) find(ctx context.Context) error {
	s := &c.survey
	s.count = c.count()
	begin := processCPU()
	shot, err := c.reader.Snapshot(ctx)
	if err != nil {
		return err
	}
	s.problems = shot.Problems
	now := c.now()
	if sign := s.signature(shot); sign != s.sign || now.Sub(s.whole) >= latest {
		s.sign, s.whole = sign, now
		c.arrange(shot)
	}
	if c.cfg.PSS && !c.cfg.Full {
		for _, b := range c.boxes {
			for i := range b.members {
				if m := &b.members[i]; m.beside && !m.Kernel {
					c.follow(b, m)
					c.pss(m)
				}
			}
		}
	}
	c.stale = false
	s.at, s.cost = c.now(), time.Duration(processCPU()-begin)
	return nil
}

// signature tells whether the processes and where they are charged have changed.
func (s *survey) signature(shot *attribution.Snapshot) uint64 {
	if s.sign == 0 {
		s.seed = maphash.MakeSeed()
	}
	var h maphash.Hash
	h.SetSeed(s.seed)
	b := make([]byte, 0, 512)
	for _, p := range shot.Processes {
		if p.Kernel {
			continue
		}
		b = strconv.AppendInt(b[:0], int64(p.Pid), 10)
		b = strconv.AppendUint(append(b, ' '), p.Start, 10)
		b = strconv.AppendInt(append(b, ' '), int64(p.PPid), 10)
		b = strconv.AppendInt(append(b, ' '), int64(p.Threads), 10)
		b = append(append(b, ' '), p.Groups.Memory()...)
		b = append(append(b, ' '), p.Groups.CPU()...)
		b = append(append(b, ' '), p.Comm...)
		_, _ = h.Write(append(b, 0))
	}
	return h.Sum64() | 1
}

// arrange makes the sandboxes of a snapshot.
func (c *Collector) arrange(shot *attribution.Snapshot) {
	c.survey.members = record.Problems{}
	found := shot.Sandboxes()
	boxes := make([]attribution.Box, len(found))
	for i := range found {
		boxes[i] = found[i].Box
	}
	members := shot.Members(boxes, nil, &c.survey.members)
	// Of a process, what it is charged to depends on these only.
	outline := make([]record.Process, len(members))
	for i, m := range members {
		outline[i] = record.Process{Pid: m.Pid, Start: m.Start, PPid: m.PPid, Role: m.Role, Lane: m.Lane, Groups: m.Sets}
		if len(m.VCPUs) > 0 {
			outline[i].VCPU = 1 // a shim with a guest in it, as Dragonball's
		}
	}
	for _, k := range c.groups {
		k.used = false
	}
	for _, w := range c.processes {
		w.used = false
	}
	c.boxes = make([]*box, len(found))
	owner := map[string]int{} // path → lane
	for i := range found {
		c.boxes[i] = describe(&found[i])
	}
	for _, g := range shot.Charges(outline, boxes) {
		if g.Lane < 0 || g.Lane >= len(c.boxes) || g.Charge == record.ChargeShared {
			continue
		}
		owner[g.Path] = g.Lane
		if k := c.group(g.Path); k != nil {
			b := c.boxes[g.Lane]
			b.charged = append(b.charged, charged{kept: k, charge: g.Charge, nested: g.Nested})
		}
	}
	for i := range members {
		m := &members[i]
		if m.Lane < 0 || m.Lane >= len(c.boxes) {
			continue
		}
		elsewhere := func(where string) bool {
			lane, own := owner[where]
			return !own || lane != m.Lane
		}
		c.boxes[m.Lane].members = append(c.boxes[m.Lane].members, member{
			Member: *m, beside: elsewhere(m.Groups.Memory()), billedBeside: elsewhere(m.Groups.CPU()),
		})
	}
	c.boxes = slices.DeleteFunc(c.boxes, func(b *box) bool { return len(b.members) == 0 })
	for _, b := range c.boxes {
		b.finish()
		for i := range b.members {
			if m := &b.members[i]; m.beside || m.billedBeside || c.cfg.Full || c.expanded[b.key] {
				c.follow(b, m)
			}
		}
	}
	c.sweep()
	c.sweepProcesses()
}

// describe takes over what the census says of a sandbox.
func describe(f *attribution.Found) *box {
	b := &box{Sandbox: Sandbox{Name: f.Name, Engine: f.Engine, Rule: f.Rule, Pod: f.Pod, IDs: f.Box.IDs}}
	if b.IDs == nil {
		b.IDs = []string{}
	}
	// What stays the same while containers come into a pod and leave it.
	switch {
	case f.Pod != "":
		b.key = f.Pod
	case f.Box.Group != "":
		b.key = f.Box.Group
	case len(b.IDs) > 0:
		b.key = b.IDs[0]
	default:
		b.key = f.Name
	}
	return b
}

// finish works out what follows from the groups and processes of a sandbox.
func (b *box) finish() {
	for _, m := range b.members {
		switch {
		case m.Role == record.RoleShim && strings.Contains(strings.Join(m.Args, " "), "containerd-shim-kata"):
			b.Isolation = "kata"
		case m.Role == record.RoleVMM && b.Isolation == "":
			b.Isolation = "vm"
		case m.Role == record.RoleSentry && b.Isolation == "":
			b.Isolation = "gvisor"
		}
	}
	if b.Engine == "kata" || b.Engine == "gvisor" {
		b.Isolation, b.Engine = b.Engine, ""
		if b.Pod != "" { // podman's pods have no VM of their own
			b.Engine = "kubernetes"
		}
	}
	for i := range b.charged {
		in := &b.charged[i]
		if in.charge != record.ChargePod {
			continue
		}
		for _, out := range b.charged {
			if out.charge == record.ChargeOverhead && strings.HasPrefix(in.path, out.path+"/") {
				in.within = true
			}
		}
	}
	words := []string{b.Name, b.engine(), b.Pod}
	words = append(words, b.IDs...)
	for _, k := range b.charged {
		words = append(words, k.path)
	}
	for _, m := range b.members {
		if !slices.Contains(words, m.Comm) {
			words = append(words, m.Comm)
		}
	}
	b.text = strings.ToLower(strings.Join(words, "\n"))
}

// follow has a process watched from now on.
func (c *Collector) follow(b *box, m *member) {
	if m.Kernel && c.cfg.Root != "" {
		return
	}
	m.w = c.watch(procs.ID{Pid: m.Pid, Start: m.Start})
	tids := map[int]bool{}
	for _, tid := range m.VCPUs {
		tids[tid] = false
	}
	for _, set := range m.Sets {
		if len(m.Sets) > 1 && b.owns(set.Paths) && m.billedBeside {
			for _, tid := range set.Threads {
				tids[tid] = true
			}
		}
	}
	m.w.apartFrom(tids)
}

// owns tells whether the CPU time of a set of cgroups is the sandbox's own.
func (b *box) owns(paths map[string]string) bool {
	for _, controller := range []string{"cpuacct", "cpu", ""} {
		if where, ok := paths[controller]; ok {
			return slices.ContainsFunc(b.charged, func(k charged) bool { return k.path == where })
		}
	}
	return false
}
