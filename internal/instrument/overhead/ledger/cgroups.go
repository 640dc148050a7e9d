package ledger

import (
	"slices"

	"github.com/tare-bench/tare/record"
)

// Cgroup is the usage of one kind of cgroups, as systemd-cgtop shows it. Each group
// includes its descendants, so a pod's group includes its containers. Groups are of
// one kind if charge, depth and roles are equal.
type Cgroup struct {
	Charge record.Charge
	Around bool // a parent of the sandboxes' groups; it may have other children
	Nested bool
	Roles  []record.Role // of the target, in the group or below
	Path   string        // of the first group
	Count  int

	// The following are sums over all groups, at the end of the phase or as a mean over
	// it. Each is nil if one group has no such reading.
	Tasks  *int64   // processes and threads
	CPU    *float64 // CPUs
	Memory *int64   // bytes, including page cache
	Input  *float64 // bytes per second read from devices
	Output *float64 // bytes per second written; cgroup v1 does not account writeback of the page cache
}

// cgroups lists the groups of a target, parents first.
func (b *books) cgroups() {
	for g := range Each(b.end.Around) {
		if groupAt(b.end.Groups, g.Path) == nil {
			b.l.Cgroups = append(b.l.Cgroups, b.cgroup(g, groupAt(b.begin.Around, g.Path), true))
		}
	}
	for g := range Each(b.end.Groups) {
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

// counted reports whether the kernel accounts I/O by group. If no cgroup v1 group
// has any I/O, it may not.
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
