package ledger

import (
	"slices"

	"github.com/tare-bench/tare/record"
)

// Cgroup is what groups of one kind do, as systemd-cgtop shows one: each with all
// that is below it, so that a pod's holds those of its containers. Of a kind are
// groups of the sandboxes with the same charge, at the same depth, with the same
// roles in them.
type Cgroup struct {
	Charge record.Charge
	Around bool // those of sandboxes are made in it, and others' may be
	Nested bool
	Roles  []record.Role // of the target, in it or below
	Path   string        // of the first
	Count  int

	// What follows is of all of them together: at the end of the phase, or on average
	// over it. Each is nil where one of them has no such reading.
	Tasks  *int64   // processes and threads
	CPU    *float64 // CPUs
	Memory *int64   // bytes, page cache with it
	Input  *float64 // bytes per second that were read from devices
	Output *float64 // and written; on cgroup v1 what is written through the page cache is nobody's
}

// cgroups lists the groups of a target, those around first.
func (b *books) cgroups() {
	for i := range b.end.Around {
		g := &b.end.Around[i]
		if groupAt(b.end.Groups, g.Path) == nil {
			b.l.Cgroups = append(b.l.Cgroups, b.cgroup(g, groupAt(b.begin.Around, g.Path), true))
		}
	}
	for i := range b.end.Groups {
		g := &b.end.Groups[i]
		one := b.cgroup(g, groupAt(b.begin.Groups, g.Path), false)
		k := slices.IndexFunc(b.l.Cgroups, func(o Cgroup) bool {
			return g.Charge != record.ChargeShared && o.Charge == one.Charge && o.Nested == one.Nested && slices.Equal(o.Roles, one.Roles)
		})
		if k < 0 {
			b.l.Cgroups = append(b.l.Cgroups, one)
		} else {
			b.l.Cgroups[k].join(&one)
		}
	}
}

func (b *books) cgroup(g, old *record.Group, around bool) Cgroup {
	out := Cgroup{Charge: g.Charge, Around: around, Nested: g.Nested, Path: g.Path, Count: 1}
	if !around {
		out.Roles = b.rolesIn([]*record.Group{g}, g.Charge)
	}
	if slices.Contains(g.Controllers, "pids") {
		out.Tasks = &g.Pids
	}
	if g.Memory != nil {
		out.Memory = &g.Memory.Usage
	}
	took := float64(b.took())
	if old == nil || took == 0 {
		return out
	}
	if g.CPU != nil && old.CPU != nil && *g.CPU >= *old.CPU {
		out.CPU = new(float64(*g.CPU-*old.CPU) / took)
	}
	reads := func(g *record.Group) bool {
		return slices.Contains(g.Controllers, "blkio") || slices.Contains(g.Controllers, "io")
	}
	if b.counted() && reads(g) && reads(old) && g.ReadBytes >= old.ReadBytes && g.WriteBytes >= old.WriteBytes {
		out.Input, out.Output = new(1e9*float64(g.ReadBytes-old.ReadBytes)/took), new(1e9*float64(g.WriteBytes-old.WriteBytes)/took)
	}
	return out
}

// counted tells whether I/O is counted by group: where no group of cgroup v1 ever had
// any, the kernel may count none.
func (b *books) counted() bool {
	did := func(g record.Group) bool { return g.ReadBytes+g.WriteBytes > 0 || slices.Contains(g.Controllers, "io") }
	return slices.ContainsFunc(b.end.Groups, did) || slices.ContainsFunc(b.end.Around, did)
}

// join adds another group of the same kind.
func (c *Cgroup) join(o *Cgroup) {
	c.Count++
	c.Tasks, c.Memory = added(c.Tasks, o.Tasks), added(c.Memory, o.Memory)
	c.CPU, c.Input, c.Output = added(c.CPU, o.CPU), added(c.Input, o.Input), added(c.Output, o.Output)
}

func added[N int64 | float64](a, b *N) *N {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}
