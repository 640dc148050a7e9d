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

// box is a sandbox of the last discovery.
type box struct {
	Sandbox
	members []member
	charged []charged
}

// charged is a cgroup of a sandbox.
type charged struct {
	*group
	charge record.Charge
	nested bool // included in another group with the same charge
	within bool // group of the pod below a group that is outside of it
}

// member is a process of a sandbox.
type member struct {
	attribution.Member
	memoryElsewhere bool     // its memory is charged to a shared group
	cpuElsewhere    bool     // its CPU time is charged to a shared group
	vcpuInside      bool     // with cpuElsewhere: its vCPU time is charged to the sandbox
	p               *process // nil: not read
}

// search is the last discovery of sandboxes.
type search struct {
	tick     uint64
	at       time.Time
	cost     time.Duration
	count    uint64 // of processes
	stale    bool   // a group or process no longer exists
	problems record.Problems
}

// Interval of discoveries: soon if the number of processes changed or something ended,
// else late. It is always at least costCap times the duration of a discovery.
const (
	soon    = 2 * time.Second
	late    = 5 * time.Second
	costCap = 100
)

func (c *collector) due() bool {
	s, passed := &c.search, c.now().Sub(c.search.at)
	return s.at.IsZero() || passed >= max(soon, costCap*s.cost) && (passed >= late || s.stale || c.count() != s.count)
}

// count returns the number of processes, or 0 if unknown. The link count of /proc contains it
// (proc_root_getattr in fs/proc/root.c).
func (c *collector) count() uint64 {
	var st unix.Stat_t
	if err := unix.Stat(string(c.cfg.Root)+"/proc", &st); err != nil {
		return 0
	}
	return uint64(st.Nlink) //nolint:unconvert // it has 32 bits on arm64
}

// find discovers the sandboxes.
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

// arrange builds the sandboxes of a snapshot.
func (c *collector) arrange(shot *attribution.Snapshot) {
	found := shot.Sandboxes()
	boxes := make([]attribution.Sandbox, len(found))
	c.boxes = make([]*box, len(found))
	for i := range found {
		boxes[i], c.boxes[i] = found[i].Box, describe(&found[i])
	}
	members := shot.Members(boxes, nil, &c.search.problems)
	owner := c.charge(shot.Charges(members, boxes))
	pids := map[int]bool{}
	for _, m := range members {
		if m.Lane < 0 || m.Lane >= len(c.boxes) || m.Ended() && m.Threads <= 1 { // a zombie has only its pid
			continue
		}
		elsewhere := func(where string) bool {
			lane, ok := owner[where]
			return !ok || lane != m.Lane
		}
		one := member{Member: m, memoryElsewhere: elsewhere(m.Groups.Memory()), cpuElsewhere: elsewhere(m.Groups.CPU())}
		one.vcpuInside = one.cpuElsewhere && slices.ContainsFunc(m.Sets, func(set record.Membership) bool {
			return !elsewhere((&procs.Groups{Paths: set.Paths}).CPU()) && holds(set, m.VCPUs)
		})
		c.boxes[m.Lane].members = append(c.boxes[m.Lane].members, one)
		pids[m.Pid] = true
	}
	c.boxes = slices.DeleteFunc(c.boxes, func(b *box) bool { return len(b.members) == 0 })
	c.nameSandboxes()
	for _, b := range c.boxes {
		b.finish()
	}
	maps.DeleteFunc(c.processes, func(pid int, p *process) bool { return p.gone || !pids[pid] })
}

// charge opens the groups of the sandboxes and closes unused ones. It returns the indexes of
// the sandboxes by path.
func (c *collector) charge(charges []record.Group) map[string]int {
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

// holds reports whether one of the threads is in a set of cgroups.
func holds(set record.Membership, tids []int) bool {
	return len(tids) > 0 && len(set.Threads) == 0 || slices.ContainsFunc(set.Threads, func(tid int) bool { return slices.Contains(tids, tid) })
}

// describe converts a discovered sandbox.
func describe(f *attribution.Found) *box {
	b := &box{Sandbox: Sandbox{Name: f.Name, Engine: f.Engine, Rule: f.Rule, Pod: f.Pod, IDs: append([]string{}, f.Box.IDs...)}}
	// The key stays the same when containers of a pod change.
	b.key = cmp.Or(slices.Concat([]string{f.Pod, f.Box.Group}, b.IDs, []string{f.Name})...)
	return b
}

// finish sets the fields that depend on the groups and processes of a sandbox.
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
		if b.Pod != "" { // podman's pods have no VM
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

// ended reports whether all groups and processes of a sandbox are gone.
func (b *box) ended() bool {
	return !slices.ContainsFunc(b.charged, func(g charged) bool { return !g.gone }) &&
		!slices.ContainsFunc(b.members, func(m member) bool { return m.p != nil && !m.p.gone || m.p == nil && len(b.charged) == 0 })
}
