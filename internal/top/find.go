package top

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// box is a sandbox as it was found last.
type box struct {
	Sandbox
	members []member
	charged []charged
}

// charged is a cgroup of a sandbox's own.
type charged struct {
	*group
	charge record.Charge
	nested bool // in the figures of another of the same charge
	within bool // of the pod's, below one that is outside
}

// member is a process of a sandbox.
type member struct {
	attribution.Member
	beside       bool     // its memory is charged to a group of others
	billedBeside bool     // its CPU time is
	vcpuOwn      bool     // and yet its vCPUs' is not
	p            *process // nil: it is not read
}

// search is when the sandboxes were looked for, and what it took.
type search struct {
	tick     uint64
	at       time.Time
	cost     time.Duration
	count    uint64 // of processes
	stale    bool   // something that was there has gone
	problems record.Problems
}

// How often the sandboxes are looked for: sooner when the number of processes
// has changed or something has gone, and never so often that it takes more than an
// hundredth of a CPU.
const (
	soon    = 2 * time.Second
	late    = 5 * time.Second
	costCap = 100
)

func (c *collector) due() bool {
	s := &c.search
	if s.at.IsZero() {
		return true
	}
	passed := c.now().Sub(s.at)
	if passed < max(soon, costCap*s.cost) {
		return false
	}
	return passed >= late || s.stale || c.count() != s.count
}

// count is how many processes there are, as the number of links of /proc tells
// without a look at any of them (proc_root_getattr in fs/proc/root.c). 0: it does
// not tell.
func (c *collector) count() uint64 {
	var st unix.Stat_t
	if err := unix.Stat(string(c.cfg.Root)+"/proc", &st); err != nil {
		return 0
	}
	return uint64(st.Nlink) //nolint:unconvert // it has 32 bits on arm64
}

// find looks for the sandboxes.
func (c *collector) find(ctx context.Context) error {
	count, begin := c.count(), procs.OwnCPU()
	shot, err := c.reader.Snapshot(ctx)
	if err != nil {
		return err
	}
	c.search = search{tick: c.ticks, count: count, problems: shot.Problems}
	c.arrange(shot)
	c.search.problems.Add(&c.lost)
	c.lost = record.Problems{}
	c.search.at, c.search.cost = c.now(), time.Duration(procs.OwnCPU()-begin)
	return nil
}

// arrange makes the sandboxes of a snapshot.
func (c *collector) arrange(shot *attribution.Snapshot) {
	found := shot.Sandboxes()
	boxes := make([]attribution.Sandbox, len(found))
	c.boxes = make([]*box, len(found))
	for i := range found {
		boxes[i], c.boxes[i] = found[i].Box, describe(&found[i])
	}
	members := shot.Members(boxes, nil, &c.search.problems)
	owner := c.charge(shot.Charges(outline(members), boxes))
	pids := map[int]bool{}
	for _, m := range members {
		if m.Lane < 0 || m.Lane >= len(c.boxes) || m.Ended() && m.Threads <= 1 { // a zombie holds nothing but its pid
			continue
		}
		elsewhere := func(where string) bool {
			lane, own := owner[where]
			return !own || lane != m.Lane
		}
		one := member{Member: m, beside: elsewhere(m.Groups.Memory()), billedBeside: elsewhere(m.Groups.CPU())}
		for _, set := range m.Sets {
			one.vcpuOwn = one.vcpuOwn || one.billedBeside && !elsewhere((&procs.Groups{Paths: set.Paths}).CPU()) && holds(set, m.VCPUs)
		}
		c.boxes[m.Lane].members = append(c.boxes[m.Lane].members, one)
		pids[m.Pid] = true
	}
	c.boxes = slices.DeleteFunc(c.boxes, func(b *box) bool { return len(b.members) == 0 })
	for _, b := range c.boxes {
		b.finish()
	}
	maps.DeleteFunc(c.processes, func(pid int, p *process) bool { return p.gone || !pids[pid] })
}

// outline is what decides which groups processes are charged to.
func outline(members []attribution.Member) []record.Process {
	out := make([]record.Process, len(members))
	for i, m := range members {
		out[i] = record.Process{Pid: m.Pid, Start: m.Start, PPid: m.PPid, Role: m.Role, Lane: m.Lane, Groups: m.Sets}
		if len(m.VCPUs) > 0 {
			out[i].VCPU = 1 // a shim with a guest in it, as Dragonball's
		}
	}
	return out
}

// charge opens the sandboxes' own groups and closes those that none has any more. It
// returns the places of the sandboxes by path.
func (c *collector) charge(charges []attribution.GroupCharge) map[string]int {
	owner := map[string]int{}
	for _, g := range charges {
		if g.Lane < 0 || g.Lane >= len(c.boxes) || g.Charge == record.ChargeShared {
			continue
		}
		owner[g.Path] = g.Lane
		if opened := c.group(g.Path); opened != nil {
			b := c.boxes[g.Lane]
			b.charged = append(b.charged, charged{group: opened, charge: g.Charge, nested: g.Nested})
		}
	}
	maps.DeleteFunc(c.groups, func(path string, g *group) bool {
		_, used := owner[path]
		if !used {
			g.g.Close()
		}
		return !used
	})
	return owner
}

// holds tells whether one of the threads is in a set of cgroups.
func holds(set record.Membership, tids []int) bool {
	return len(tids) > 0 && len(set.Threads) == 0 || slices.ContainsFunc(set.Threads, func(tid int) bool { return slices.Contains(tids, tid) })
}

// describe takes over what attribution says of a sandbox.
func describe(f *attribution.Found) *box {
	b := &box{Sandbox: Sandbox{Name: f.Name, Engine: f.Engine, Rule: f.Rule, Pod: f.Pod, IDs: append([]string{}, f.Box.IDs...)}}
	// What stays the same while containers come into a pod and leave it.
	b.key = cmp.Or(slices.Concat([]string{f.Pod, f.Box.Group}, b.IDs, []string{f.Name})...)
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
		in.within = in.charge == record.ChargePod && slices.ContainsFunc(b.charged, func(out charged) bool {
			return out.charge == record.ChargeOverhead && strings.HasPrefix(in.path, out.path+"/")
		})
	}
	words := append([]string{b.Name, b.engine(), b.Pod}, b.IDs...)
	for _, g := range b.charged {
		words = append(words, g.path)
	}
	for _, m := range b.members {
		if !slices.Contains(words, m.Comm) {
			words = append(words, m.Comm)
		}
	}
	b.text = strings.ToLower(strings.Join(words, "\n"))
}

// ended tells whether nothing of a sandbox is there any more.
func (b *box) ended() bool {
	here := slices.ContainsFunc(b.charged, func(g charged) bool { return !g.gone })
	for _, m := range b.members {
		here = here || m.p != nil && !m.p.gone || m.p == nil && len(b.charged) == 0
	}
	return !here
}
