package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/record"
)

// groups selects the groups to sum and makes a row for each kind of charge.
func (b *books) groups() {
	b.memoryTops = tops(b.end, func(g *record.Group) bool { return ofOwn(g) && g.Memory != nil })
	b.cpuTops = tops(b.end, func(g *record.Group) bool { return ofOwn(g) && g.CPU != nil })
	all := tops(b.end, ofOwn)
	b.unaccounted(all)
	for _, charge := range []record.Charge{record.ChargePod, record.ChargeOverhead} {
		of := func(groups []*record.Group) []*record.Group {
			return slices.DeleteFunc(slices.Clone(groups), func(g *record.Group) bool { return g.Charge != charge })
		}
		b.groupRow(charge, of(all), of(b.memoryTops), of(b.cpuTops))
		b.reconcile(charge, of(b.memoryTops))
	}
	shared := tops(b.end, func(g *record.Group) bool { return !ofOwn(g) })
	b.groupRow(record.ChargeShared, shared, shared, shared)
	b.places()
}

// ofOwn reports whether a group belongs to the sandboxes alone.
func ofOwn(g *record.Group) bool { return g.Charge != record.ChargeShared }

// unaccounted marks the ledger incomplete if a process is charged to an own group
// that could not be read. Memory that only the group accounts is then missing.
func (b *books) unaccounted(own []*record.Group) {
	for p := range Each(b.end.Processes) {
		if at := memoryPath(p); holder(own, at) != nil && holder(b.memoryTops, at) == nil {
			b.l.Complete = false
		}
	}
}

// tops returns the wanted groups that are in no other wanted group, so that nothing
// is summed twice.
func tops(r *record.Reading, wanted func(*record.Group) bool) []*record.Group {
	var all []*record.Group
	for g := range Each(r.Groups) {
		if wanted(g) {
			all = append(all, g)
		}
	}
	// Filter a clone: the predicate looks up in all.
	return slices.DeleteFunc(slices.Clone(all), func(g *record.Group) bool {
		return slices.ContainsFunc(all, func(o *record.Group) bool { return o.Path != g.Path && holds(o.Path, g.Path) })
	})
}

// holds reports whether path is group or below it.
func holds(group, path string) bool {
	return group == path || group == "/" || strings.HasPrefix(path, group+"/")
}

// holder returns the group that has a path, or nil if none has or the path is unknown.
func holder(groups []*record.Group, path string) *record.Group {
	for _, g := range groups {
		if path != "" && holds(g.Path, path) {
			return g
		}
	}
	return nil
}

// memoryPath returns the cgroup that a process's memory is charged to. On v1 it is the
// group of the memory controller, on v2 the only one.
func memoryPath(p *record.Process) string {
	if len(p.Groups) == 0 {
		return ""
	}
	return path(&p.Groups[0], "memory")
}

// path returns the path of the first mounted controller, or the v2 path. It returns "" if
// the path is unknown.
func path(m *record.Membership, controllers ...string) string {
	for _, c := range append(controllers, "") {
		if at, ok := m.Paths[c]; ok {
			return at
		}
	}
	return ""
}

func cpuPath(m *record.Membership) string { return path(m, "cpuacct", "cpu") }

// groupAt returns the group at a path, or nil.
func groupAt(groups []record.Group, path string) *record.Group {
	return Find(groups, func(g *record.Group) bool { return g.Path == path })
}

// earlier returns the memory charge of a group before the sandboxes. It is zero for
// the sandboxes' own groups, which did not exist.
func (b *books) earlier(g *record.Group) record.GroupMemory {
	if old := groupAt(b.before.Groups, g.Path); old != nil && old.Memory != nil {
		return *old.Memory
	}
	return record.GroupMemory{}
}

// charged returns by how much the charge of a group grew.
func (b *books) charged(g *record.Group) (m Memory, usage int64) {
	if g.Memory == nil {
		return Memory{}, 0
	}
	now, old := g.Memory, b.earlier(g)
	return Memory{Anon: now.Anon - old.Anon, Shmem: now.Shmem - old.Shmem,
		Kernel: now.Kernel + now.Sock - old.Kernel - old.Sock, Swap: now.Swap - old.Swap, Cache: now.File - old.File}, now.Usage - old.Usage
}

func (b *books) groupRow(charge record.Charge, all, memory, cpu []*record.Group) {
	if len(all) == 0 {
		return
	}
	r := GroupRow{Charge: charge, Count: len(all), Roles: b.rolesIn(all, charge)}
	for _, g := range all[:min(len(all), 3)] {
		r.Paths = append(r.Paths, g.Path)
	}
	if len(all) > 3 {
		r.Paths = append(r.Paths, "…")
	}
	var peak, above, throttled int64
	for _, g := range memory {
		if g.Memory == nil {
			continue
		}
		m, usage := b.charged(g)
		if old := groupAt(b.begin.Groups, g.Path); old != nil && old.Memory != nil && g.Memory.Peak > old.Memory.Peak { // it rose in the phase
			above += max(g.Memory.Peak-g.Memory.Usage, 0)
		}
		r.Memory, r.Usage, peak = r.Memory.plus(m), r.Usage+usage, peak+g.Memory.Peak
	}
	over := func(quantity string, v float64) { put(&r.Over, quantity, v, "charge", string(charge)) }
	over("group-peak", float64(peak))
	over("group-highest", float64(r.Usage+above))
	if r.Limit = b.limit(charge, memory); r.Limit > 0 {
		over("group-limit", float64(r.Limit))
	}
	if ns, known := b.groupTime(cpu); known && b.took() > 0 {
		over("group-cpu", float64(ns)/float64(b.took()))
	}
	for _, g := range all {
		if old := groupAt(b.begin.Groups, g.Path); old != nil {
			throttled += max(g.Throttled-old.Throttled, 0)
		}
	}
	over("group-throttled", float64(throttled))
	b.l.Groups = append(b.l.Groups, r)
}

// limit returns the lowest memory limit of groups, or 0 if one has none. If some of the
// groups hold the workload, only those count. With systemd's cgroup driver, a pod's pause
// container has a group of its own without a limit.
func (b *books) limit(charge record.Charge, groups []*record.Group) (lowest int64) {
	bounding := slices.DeleteFunc(slices.Clone(groups), func(g *record.Group) bool {
		return !slices.Contains(b.rolesIn([]*record.Group{g}, charge), record.RoleWorkload)
	})
	if len(bounding) == 0 {
		bounding = groups
	}
	for _, g := range bounding {
		if g.Memory == nil {
			continue
		}
		at := cmp.Or(g.Memory.Limit, b.limitBelow(g))
		if at == 0 {
			return 0
		}
		if lowest == 0 || at < lowest {
			lowest = at
		}
	}
	return lowest
}

// limitBelow returns the limit of the group below g that holds a workload, or 0. crun
// sets the limit on a group "container" below the scope that systemd makes.
func (b *books) limitBelow(g *record.Group) int64 {
	for o := range Each(b.end.Groups) {
		if o.Path != g.Path && holds(g.Path, o.Path) && o.Memory != nil && o.Memory.Limit > 0 &&
			slices.Contains(b.rolesIn([]*record.Group{o}, o.Charge), record.RoleWorkload) {
			return o.Memory.Limit
		}
	}
	return 0
}

// groupTime returns the CPU time of groups in the phase, in ns. It is known if every
// group was read at both ends and no counter decreased.
func (b *books) groupTime(groups []*record.Group) (ns int64, known bool) {
	for _, g := range groups {
		old := groupAt(b.begin.Groups, g.Path)
		if old == nil || old.CPU == nil || g.CPU == nil {
			return 0, false
		}
		if *g.CPU < *old.CPU {
			b.backwards("the CPU time of " + g.Path)
			return 0, false
		}
		ns += *g.CPU - *old.CPU
	}
	return ns, len(groups) > 0
}

// rolesIn returns the roles with a process or thread in the groups. A process in an
// own group of the sandbox does not count for the shared parent group.
func (b *books) rolesIn(groups []*record.Group, charge record.Charge) []record.Role {
	found := map[record.Role]bool{}
	inside := func(at string) bool {
		return holder(groups, at) != nil &&
			(charge != record.ChargeShared || holder(b.memoryTops, at) == nil && holder(b.cpuTops, at) == nil)
	}
	for p := range Each(b.end.Processes) {
		for j := range p.Groups {
			m := &p.Groups[j]
			if !inside(path(m, "memory")) && !inside(cpuPath(m)) {
				continue
			}
			if j > 0 && p.VCPU > 0 {
				found[record.RoleVCPU] = true
			} else {
				found[p.Role] = true
			}
		}
	}
	return Order(found)
}

// reconcile compares the charge of own groups with the PSS of their processes.
func (b *books) reconcile(charge record.Charge, groups []*record.Group) {
	if len(groups) == 0 {
		return
	}
	var group, mapped Memory
	for _, g := range groups {
		m, _ := b.charged(g)
		group = group.plus(m)
	}
	for p := range Each(b.end.Processes) {
		if p.Read && holder(groups, memoryPath(p)) != nil {
			mapped = mapped.plus(b.has(p))
		}
	}
	for _, k := range []struct {
		kind              string
		charged, measured int64
	}{{"anon", group.Anon, mapped.Anon}, {"shmem", group.Shmem, mapped.Shmem}} {
		put(&b.l.Reconciled, "reconciled-memory", float64(k.charged), "charge", string(charge), "kind", k.kind, "of", "groups")
		put(&b.l.Reconciled, "reconciled-memory", float64(k.measured), "charge", string(charge), "kind", k.kind, "of", "processes")
	}
}

// places records the groups that the sandboxes' processes are charged to, by role.
func (b *books) places() {
	own := tops(b.end, ofOwn)
	for p := range Each(b.end.Processes) {
		where := memoryPath(p)
		if p.Lane < 0 || where == "" {
			continue
		}
		charge := record.ChargeShared
		if g := holder(own, where); g != nil {
			charge, where = g.Charge, g.Path
		}
		at := b.place(p.Role, charge, where)
		at.Processes++
		if p.Read {
			at.Memory += b.has(p).Sum()
		}
	}
}

// place returns the Place of a role and charge, and counts the group at where.
func (b *books) place(role record.Role, charge record.Charge, where string) *Place {
	i := slices.IndexFunc(b.l.Places, func(p Place) bool { return p.Role == role && p.Charge == charge })
	if i < 0 {
		i = len(b.l.Places)
		b.l.Places = append(b.l.Places, Place{Role: role, Charge: charge, Path: where})
	}
	if one := (Place{Role: role, Charge: charge, Path: where}); !b.placed[one] {
		b.placed[one] = true
		b.l.Places[i].Count++
	}
	return &b.l.Places[i]
}
