package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tare-bench/tare/record"
)

// ThreadStack is the kernel's stack of one thread, in bytes: THREAD_SIZE of
// x86-64 (arch/x86/include/asm/page_64_types.h, order 2) and of arm64
// (arch/arm64/include/asm/memory.h, MIN_THREAD_SHIFT 14).
const ThreadStack = 16 << 10

// kernel enters the kernel's memory in two rows.
//
// The first is what somebody is charged for, by name: the kernel memory of the
// sandboxes' own groups (v1: kmem and kmem.tcp; v2: kernel and sock), and of
// members that live in groups with others, whose charge cannot be told apart,
// the change of their page tables and of 16 KiB a thread; likewise of members of
// own groups that account no kernel memory.
//
// The second is what the node's slab, stacks, page tables and per-CPU memory
// grew by beyond that: network namespaces, mounts, cgroups' own structures, and
// whatever the rest of the node made the kernel keep or let go meanwhile. Its kind
// is known, so it is no residual. Whose it is, is not: on a quiet node the
// sandboxes made it grow, on a busy one it can be many times what they took, of
// either sign. So it is a figure of its own, in no sum; a slope over counts tells
// what of it a sandbox adds. The residual is then what no book of the node
// explains: memory of neither processes nor shared memory nor slab, stacks, page
// tables and per-CPU areas.
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
	for i := range b.end.Processes {
		p := &b.end.Processes[i]
		if at, ok := memoryPath(p); ok {
			if g := holder(b.memoryTops, at); g != nil && !countsNone(g.Memory) {
				continue
			} else if g != nil {
				blind[g] = true
				add(p, 1)
				continue
			}
		}
		members++
		add(p, 1)
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
		r.rule(fmt.Sprintf("what %d cgroups of the sandboxes' own are charged for", n))
	}
	if n := len(blind); n > 0 {
		r.rule(fmt.Sprintf("page tables and %d KiB of stack a thread of what is in %d cgroups of the sandboxes' own that account no kernel memory (cgroup.memory=nokmem)", ThreadStack>>10, n))
	}
	if members > 0 {
		r.rule(fmt.Sprintf("page tables and %d KiB of stack a thread of %d processes whose cgroup holds others too", ThreadStack>>10, members))
	}
	n := b.row(record.RoleKernelNode)
	n.Memory.Kernel = b.end.Host.Kernel() - b.before.Host.Kernel() - b.accounted
	n.rule("the node's change of slab, stacks, page tables and per-CPU memory, less what is charged by name")
}

// countsNone is true of a group that accounts no kernel memory, as none does on a
// node that was started with cgroup.memory=nokmem: a process has page tables and
// stacks, so one that holds any is charged for some.
func countsNone(m *record.GroupMemory) bool {
	return m.Kernel == 0 && m.Slab == 0 && m.Stacks == 0 && m.PageTables == 0 && m.Percpu == 0
}

// known is what of a group's kernel memory the node's books hold too: v2 tells
// it by kind; v1 does not, and almost all of it is of those kinds.
func known(m *record.GroupMemory) int64 {
	if parts := m.Slab + m.Stacks + m.PageTables + m.Percpu; parts > 0 {
		return parts
	}
	return m.Kernel
}

// unmappedRule names shared memory that a cgroup is charged for beyond what
// processes map: files in a tmpfs, and gVisor's and VMMs' memory files.
const unmappedRule = "and shared memory that its cgroup is charged for and no process maps"

// shared enters shared memory that own groups are charged for and no process
// maps. A sandbox's groups and processes are taken together, for a process that
// was moved maps what another group of its sandbox is charged for.
func (b *books) shared() {
	excess, largest := b.byLane(func(m *Memory) int64 { return m.Shmem }, func(p *record.Process) int64 { return p.PSSShmem })
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

// owner is the role for whose sake a sandbox's groups are charged what no
// process is seen to use: the VMM (or the shim that it lives in), in whose memory
// the guest's is, or else the workload. gVisor keeps the workload's memory in a
// file that it hardly maps. Lane −1 asks of all sandboxes.
func (b *books) owner(lane int) record.Role {
	owner := record.RoleWorkload
	for i := range b.end.Processes {
		p := &b.end.Processes[i]
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

// cache closes the books of the page cache, which is not in the sum.
func (b *books) cache() {
	c := &b.l.Cache
	c.Node = b.end.Host.Cache() - b.before.Host.Cache()
	var inside int64 // mapped by processes in own groups
	for i := range b.end.Processes {
		p := &b.end.Processes[i]
		if at, ok := memoryPath(p); ok && holder(b.memoryTops, at) != nil {
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
	r.rule("page cache that own cgroups are charged for, less what processes in them map")
}
