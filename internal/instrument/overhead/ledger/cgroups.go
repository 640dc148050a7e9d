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

	// Usage has sums over all groups, at the end of the phase or as a mean over it: "tasks",
	// which are processes and threads; "cpu" in CPUs; "memory" in bytes, including page cache;
	// "input" and "output" in bytes per second read from and written to devices. A sum is
	// missing if one group has no such reading. cgroup v1 does not account writeback of the
	// page cache.
	Usage map[string]float64
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
	out := Cgroup{Charge: g.Charge, Around: around, Nested: g.Nested, Path: g.Path, Count: 1, Usage: map[string]float64{}}
	if !around {
		out.Roles = b.rolesIn([]*record.Group{g}, g.Charge)
	}
	if slices.Contains(g.Controllers, "pids") {
		out.Usage["tasks"] = float64(g.Pids)
	}
	if g.Memory != nil {
		out.Usage["memory"] = float64(g.Memory.Usage)
	}
	took := float64(b.took())
	if old == nil || took == 0 {
		return out
	}
	if g.CPU != nil && old.CPU != nil && *g.CPU >= *old.CPU {
		out.Usage["cpu"] = float64(*g.CPU-*old.CPU) / took
	}
	reads := func(g *record.Group) bool {
		return slices.Contains(g.Controllers, "blkio") || slices.Contains(g.Controllers, "io")
	}
	if b.counted() && reads(g) && reads(old) && g.ReadBytes >= old.ReadBytes && g.WriteBytes >= old.WriteBytes {
		out.Usage["input"], out.Usage["output"] = 1e9*float64(g.ReadBytes-old.ReadBytes)/took, 1e9*float64(g.WriteBytes-old.WriteBytes)/took
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
	for of := range c.Usage {
		if n, known := o.Usage[of]; known {
			c.Usage[of] += n
		} else {
			delete(c.Usage, of)
		}
	}
}
