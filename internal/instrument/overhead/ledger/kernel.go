package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tare-bench/tare/record"
)

// ThreadStack is the size of a thread's kernel stack in bytes: THREAD_SIZE of
// x86-64 (arch/x86/include/asm/page_64_types.h, order 2) and of arm64
// (arch/arm64/include/asm/memory.h, MIN_THREAD_SHIFT 14).
const ThreadStack = 16 << 10

// kernel adds the kernel's memory in two rows.
//
// RoleKernel is memory that is charged. For the sandboxes' own groups it is their
// kernel charge (v1: kmem and kmem.tcp; v2: kernel and sock). The charge of a shared
// group cannot be divided among its members. For them it is the change of their page
// tables plus 16 KiB per thread. The same holds for own groups that do not account
// kernel memory.
//
// RoleKernelNode is the remaining growth of the node's slab, stacks, page tables and
// per-CPU memory. It comes from network namespaces, mounts, structures of cgroups, and
// activity of the rest of the node. Its kind is known, so it is not part of the residual. Its
// owner is unknown. On a quiet node the sandboxes caused it; on a busy node it can be
// many times their usage, with either sign. Therefore it is a separate figure and in
// no sum. The slope over the number of sandboxes shows their part of it.
//
// The residual is then memory that no counter of the node explains.
func (b *books) kernel() {
	r := b.row(record.RoleKernel)
	for _, g := range b.memoryTops {
		m, _ := b.charged(g)
		old := b.earlier(g)
		r.Memory.Kernel += m.Kernel
		b.boxKernel += m.Kernel
		b.accounted += known(g.Memory) - known(&old)
	}
	blind := map[*record.Group]bool{}
	members := 0
	add := func(p *record.Process, sign int64) {
		amount := sign * (p.PageTables + int64(p.Threads)*ThreadStack)
		r.Memory.Kernel += amount
		b.accounted += amount
		if p.Lane >= 0 {
			b.boxKernel += amount
		}
	}
	for p := range Each(b.end.Processes) {
		g := holder(b.memoryTops, memoryPath(p))
		if g != nil && !countsNone(g.Memory) {
			continue
		}
		if add(p, 1); g != nil {
			blind[g] = true
			continue
		}
		members++
		if old := b.was[idOf(p)]; old != nil {
			add(old, -1)
		}
	}
	for id, p := range b.was {
		if b.is[id] == nil {
			add(p, -1)
		}
	}
	if n := len(b.memoryTops) - len(blind); n > 0 {
		r.rule(fmt.Sprintf("charge of %d own cgroups of the sandboxes", n))
	}
	if n := len(blind); n > 0 {
		r.rule(fmt.Sprintf("page tables and %d KiB of stack per thread of the processes in %d own cgroups of the sandboxes without kernel memory accounting (cgroup.memory=nokmem)", ThreadStack>>10, n))
	}
	if members > 0 {
		r.rule(fmt.Sprintf("page tables and %d KiB of stack per thread of %d processes in shared cgroups", ThreadStack>>10, members))
	}
	n := b.row(record.RoleKernelNode)
	n.Memory.Kernel = b.end.Host.Kernel() - b.before.Host.Kernel() - b.accounted
	n.rule("the node's change of slab, stacks, page tables and per-CPU memory, less charged kernel memory")
}

// countsNone reports whether a group accounts no kernel memory, as on a node booted
// with cgroup.memory=nokmem. Any process has page tables and stacks, so a group
// with accounting has a charge.
func countsNone(m *record.GroupMemory) bool {
	return m.Kernel == 0 && m.Slab == 0 && m.Stacks == 0 && m.PageTables == 0 && m.Percpu == 0
}

// known returns the part of a group's kernel memory that the node's counters include.
// v2 reports it by kind. v1 does not, and almost all of it is of those kinds.
func known(m *record.GroupMemory) int64 {
	if parts := m.Slab + m.Stacks + m.PageTables + m.Percpu; parts > 0 {
		return parts
	}
	return m.Kernel
}

// unmappedRule explains shared memory that a cgroup is charged for and its processes do
// not map. Examples are files in a tmpfs, and memory files of gVisor and VMMs.
const unmappedRule = "plus shared memory that is charged to its cgroup and not mapped by any process"

// shared adds shared memory that own groups are charged for and no process maps. Groups
// and processes of a sandbox are summed. A process that was moved still maps memory that
// is charged to its earlier group.
func (b *books) shared() {
	excess, largest := b.byLane(func(m Memory) int64 { return m.Shmem })
	for _, n := range slices.Sorted(maps.Keys(largest)) {
		g, amount := largest[n], excess[n]-b.elsewhere(n)
		if amount <= 0 {
			continue
		}
		role := b.owner(g.Lane)
		r := b.row(role)
		r.Memory.Shmem += amount
		r.rule(unmappedRule)
		b.boxUnmapped += amount
		b.place(role, g.Charge, g.Path).Memory += amount
	}
}

// owner returns the role that a sandbox's unattributed charges belong to. It is the
// VMM, or the shim that contains it, because that holds the guest's memory. Without
// either it is the workload: gVisor keeps its memory in a file that is hardly mapped.
// Lane −1 means all sandboxes.
func (b *books) owner(lane int) record.Role {
	owner := record.RoleWorkload
	for p := range Each(b.end.Processes) {
		switch {
		case p.Lane < 0 || lane >= 0 && p.Lane != lane:
		case p.Role == record.RoleVMM:
			return p.Role
		case p.Role == record.RoleShim && p.VCPU > 0:
			owner = record.RoleShim
		}
	}
	return owner
}

// cache closes the accounts of the page cache, which is not part of the sum.
func (b *books) cache() {
	c := &b.l.Cache
	c.Node = b.end.Host.Cache() - b.before.Host.Cache()
	var inside int64 // mapped by processes in own groups
	for p := range Each(b.end.Processes) {
		if holder(b.memoryTops, memoryPath(p)) != nil {
			inside += p.PSSFile
		}
	}
	for _, g := range b.memoryTops {
		m, _ := b.charged(g)
		c.Charged += m.Cache
	}
	for _, r := range b.rows {
		c.Mapped += r.Memory.Cache
	}
	r := b.row(record.RoleCache)
	r.Memory.Cache = max(c.Charged-inside, 0)
	r.rule("page cache charged to own cgroups, less page cache mapped by their processes")
}
