package ledger

import (
	"maps"

	"github.com/tare-bench/tare/record"
)

// once finds huge pages that are counted more than once. They have no PSS: each
// process that maps them reports them in full. This affects pages shared by fork,
// and guest memory that both the VMM and virtiofsd map. The node counts each page
// once. The surplus of the processes is subtracted from all but the process with
// the most huge pages in each sandbox.
func (b *books) once() {
	b.twice = map[*record.Process]int64{}
	var all int64
	first := map[int]*record.Process{} // by lane
	for p := range Each(b.end.Processes) {
		all += p.Huge
		if f := first[p.Lane]; p.Role != record.RoleVirtiofs && p.Huge > 0 && (f == nil || p.Huge > f.Huge) {
			first[p.Lane] = p
		}
	}
	for p := range Each(b.before.Processes) {
		all -= p.Huge
	}
	for p := range Each(b.end.Processes) {
		if p.Role == record.RoleVirtiofs && first[p.Lane] != nil {
			b.twice[p] = p.Huge
			all -= p.Huge
		}
	}
	more := all - (b.end.Host.Huge - b.before.Host.Huge)
	for p := range Each(b.end.Processes) {
		if b.end.Host.Huge == 0 || more <= 0 || p == first[p.Lane] || b.twice[p] > 0 {
			continue
		}
		b.twice[p] = min(more, p.Huge)
		more -= b.twice[p]
	}
}

// has returns the memory of a process at the phase's end, without huge pages that are
// counted with another process.
func (b *books) has(p *record.Process) Memory {
	m := has(p)
	m.Huge -= b.twice[p]
	return m
}

// unseenBound is the minimum of charged memory, in bytes, that is reported as
// unseen. The kernel updates charges in batches of some pages per CPU.
const unseenBound = 1 << 20

// unseen adds anonymous memory that the sandboxes' own groups are charged for, but that
// none of their processes has. The process that used it has moved or exited, or was not
// recognized. Groups and processes of a sandbox are summed, see shared. The sum includes
// processes in shared groups. Their memory may have been charged before they moved, so
// the amount is a minimum.
func (b *books) unseen() {
	charged, _ := b.byLane(func(m Memory) int64 { return m.Anon })
	for _, n := range charged {
		if n > unseenBound && b.end.Problems.Gone+b.end.Problems.Reused == 0 { // otherwise the process may have exited during the reading
			r := b.row(record.RoleUnseen)
			r.Memory.Anon += n
			b.boxUnmapped += n
			r.rule("at least: anonymous memory that is charged to the sandboxes' own cgroups and belongs to none of their processes")
		}
	}
}

// byLane returns the charge of each sandbox's own groups beyond what its processes
// have. largest is the group with the most shared memory of each sandbox. Sandboxes
// that share a group count as one, with lane −1. Sandboxes with an unread process
// are left out.
func (b *books) byLane(of func(Memory) int64) (excess map[int]int64, largest map[int]*record.Group) {
	excess, largest = map[int]int64{}, map[int]*record.Group{}
	for _, g := range b.memoryTops {
		m, _ := b.charged(g)
		n := b.laneOf(g.Lane)
		excess[n] += of(m)
		if old := largest[n]; old == nil || g.Memory.Shmem > old.Memory.Shmem {
			largest[n] = g
		}
	}
	unread := map[int]bool{}
	for p := range Each(b.end.Processes) {
		if p.Lane >= 0 {
			n := b.laneOf(p.Lane)
			excess[n], unread[n] = excess[n]-of(has(p)), unread[n] || !p.Read
		}
	}
	maps.DeleteFunc(excess, func(n int, _ int64) bool { return unread[n] })
	return excess, largest
}

// laneOf returns the lane, or −1 for every lane if the sandboxes share an own group.
func (b *books) laneOf(lane int) int {
	for _, g := range b.memoryTops {
		if g.Lane < 0 {
			return -1
		}
	}
	return lane
}

// elsewhere returns how much of a sandbox's shared memory the daemon or other sandboxes
// map. That memory is in their rows. The result is at most the group's mapped memory less
// what the sandbox's own processes map.
func (b *books) elsewhere(lane int) int64 {
	var others, own, files, mapped int64
	for p := range Each(b.end.Processes) {
		if p.Lane >= 0 && b.laneOf(p.Lane) == lane {
			own, files = own+p.PSSShmem, files+p.PSSFile
		} else {
			others += p.PSSShmem
		}
	}
	for _, g := range b.memoryTops {
		if b.laneOf(g.Lane) == lane {
			mapped += g.Memory.Mapped - min(g.Memory.File, files)
		}
	}
	return max(min(others, mapped-own), 0)
}
