package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Close returns the ledger of one phase. Memory is the change from before the
// sandboxes to the end of the phase; CPU time is that of the phase. If begin is nil,
// CPU time is unknown. Uncertainty is left 0; [Visit.Close] sets it.
//
// The ledger is unknown if Close returns an error. If a reading lacks values, the ledger is
// incomplete; missing values are never filled in.
func Close(before, begin, end *record.Reading) (Ledger, error) {
	switch {
	case end == nil:
		return Ledger{}, errors.New("the phase was not read at its end")
	case end.Failure != nil:
		return Ledger{}, fmt.Errorf("the phase failed: %s", end.Failure.Detail)
	case before == nil:
		return Ledger{}, errors.New("there is no reading before the sandboxes were created: the change is unknown")
	case before.Host.Total <= 0 || end.Host.Total <= 0:
		return Ledger{}, errors.New("the node's memory was not read")
	case end.Time < before.Time:
		return Ledger{}, fmt.Errorf("the phase's end (%d ns) was read before its visit began (%d ns)", end.Time, before.Time)
	}
	if begin == nil {
		begin = &record.Reading{Time: end.Time} // a phase of no duration
	}
	b := &books{before: before, begin: begin, end: end, rows: map[record.Role]*Row{}, placed: map[Place]bool{}}
	b.was, b.began, b.is = byIdentity(before), byIdentity(begin), byIdentity(end)
	b.l.Complete = unread(&before.Problems) == 0 && unread(&end.Problems) == 0 && b.everyLane()
	b.l.Problems = before.Problems
	b.l.Problems.Add(&begin.Problems)
	b.l.Problems.Add(&end.Problems)
	b.once()
	b.memory()
	b.groups()
	b.cgroups()
	b.kernel()
	b.shared()
	b.unseen()
	b.cache()
	b.cpu()
	b.node()
	b.total()
	b.engine()
	return b.l, nil
}

// books is a ledger under construction.
type books struct {
	before, begin, end *record.Reading
	was, began, is     map[identity]*record.Process // before, begin and end by identity

	l    Ledger
	rows map[record.Role]*Row
	// memoryTops and cpuTops are the topmost own groups of the sandboxes that account
	// memory and CPU time.
	memoryTops, cpuTops    []*record.Group
	accounted              int64                     // the part of the kernel rows that the node's counters have by kind
	boxKernel, boxUnmapped int64                     // of the sandboxes, without their daemons
	twice                  map[*record.Process]int64 // bytes of huge pages that are counted with another process, see once
	placed                 map[Place]bool            // groups that are already counted in a place
}

// Each iterates over the elements of a slice by pointer: readings and rows are large.
func Each[T any](all []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range all {
			if !yield(&all[i]) {
				return
			}
		}
	}
}

// Find returns the first wanted element, or nil.
func Find[T any](all []T, wanted func(*T) bool) *T {
	for one := range Each(all) {
		if wanted(one) {
			return one
		}
	}
	return nil
}

// identity identifies a process even if its pid is reused.
type identity struct {
	pid   int
	start uint64
}

func idOf(p *record.Process) identity { return identity{p.Pid, p.Start} }

func byIdentity(r *record.Reading) map[identity]*record.Process {
	all := map[identity]*record.Process{}
	for p := range Each(r.Processes) {
		all[idOf(p)] = p
	}
	return all
}

func (b *books) row(role record.Role) *Row {
	if b.rows[role] == nil {
		b.rows[role] = &Row{Role: role}
	}
	return b.rows[role]
}

func (r *Row) rule(text string) {
	if text != "" && !slices.Contains(r.Rules, text) {
		r.Rules = append(r.Rules, text)
	}
}

// memory adds the PSS of each process, less its PSS before the sandboxes. The memory
// of a process that has exited since is subtracted.
func (b *books) memory() {
	for p := range Each(b.end.Processes) {
		r := b.row(p.Role)
		r.Processes++
		r.rule(p.Rule)
		old := b.was[idOf(p)]
		if !p.Read || old != nil && !old.Read {
			b.l.Complete = false
			continue
		}
		m := b.has(p)
		if old != nil {
			m = m.minus(has(old))
		}
		if b.twice[p] > 0 {
			r.rule("huge pages shared with another process are counted with that process")
		}
		r.Memory = r.Memory.plus(m)
	}
	for p := range Each(b.before.Processes) {
		switch {
		case b.is[idOf(p)] != nil:
		case !p.Read:
			b.l.Complete = false
		default:
			r := b.row(p.Role)
			r.Memory = r.Memory.minus(has(p))
			r.rule("less a process that exited since the reading before")
		}
	}
}

func has(p *record.Process) Memory {
	return Memory{Anon: p.PSSAnon, Shmem: p.PSSShmem, Swap: p.Swap, Huge: p.Huge, Cache: p.PSSFile}
}

func (m Memory) plus(n Memory) Memory {
	return Memory{m.Anon + n.Anon, m.Shmem + n.Shmem, m.Kernel + n.Kernel, m.Swap + n.Swap, m.Huge + n.Huge, m.Cache + n.Cache}
}

func (m Memory) minus(n Memory) Memory {
	return Memory{m.Anon - n.Anon, m.Shmem - n.Shmem, m.Kernel - n.Kernel, m.Swap - n.Swap, m.Huge - n.Huge, m.Cache - n.Cache}
}

// unread returns how many objects existed and could not be read. Processes that
// exited before they were read do not count: that is normal on any node.
func unread(p *record.Problems) int { return p.Denied + p.Broken }

// everyLane reports whether every sandbox has a process or a group. It also returns false
// if a daemon may have been replaced while the reading before was taken.
func (b *books) everyLane() bool {
	lanes := map[int]bool{}
	vanished := b.before.Problems.Gone+b.before.Problems.Reused > 0
	for p := range Each(b.end.Processes) {
		if p.Lane >= 0 {
			lanes[p.Lane] = true
		} else if vanished && p.Role == record.RoleDaemon && b.was[idOf(p)] == nil {
			return false
		}
	}
	for g := range Each(b.end.Groups) {
		if g.Lane >= 0 {
			lanes[g.Lane] = true
		}
	}
	return len(lanes) >= b.end.Sandboxes
}

// backwards records a counter that decreased.
func (b *books) backwards(what string) {
	b.l.Problems.Backwards++
	b.l.Problems.Note(what + " decreased within the phase")
}

// total orders the rows, sums them and compares the sum with the node's change.
func (b *books) total() {
	h, h0 := &b.end.Host, &b.before.Host
	l := &b.l
	l.Node, l.Others, l.AvailableChange = h.Used()-h0.Used(), h.Others-h0.Others, h.Available-h0.Available
	others := b.row(record.RoleOthers)
	others.Processes, others.Memory.Anon = h.OthersCount, l.Others
	if l.Related = h.OthersCount; h.Related != nil {
		l.Related = *h.Related
	}
	others.rule("the change of RssAnon of all processes other than the target's")
	b.othersCPU(others)

	var sum Memory
	for _, role := range Order(b.rows) {
		r := *b.rows[role]
		l.Rows = append(l.Rows, r)
		if role == record.RoleOthers {
			continue
		}
		sum = sum.plus(r.Memory)
		switch role {
		case record.RoleCache:
		case record.RoleKernelNode:
			l.Uncharged = r.Memory.Kernel
		default:
			l.Sum += r.Memory.Sum()
		}
	}
	l.OthersNode = l.Others
	if h.Anon > 0 && h0.Anon > 0 { // every node has some; 0 means unread
		l.OthersNode = h.Anon - h0.Anon - sum.Anon
	}
	l.Residual = l.Node - l.Others - l.Uncharged - l.Sum
	l.ResidualBy = Memory{
		Anon:   h.Anon - h0.Anon - l.Others - sum.Anon,
		Shmem:  h.Shmem - h0.Shmem - sum.Shmem,
		Kernel: h.Kernel() - h0.Kernel() - b.accounted - l.Uncharged,
		Swap:   h.SwapUsed - h0.SwapUsed - sum.Swap,
		Huge:   h.Huge - h0.Huge - sum.Huge,
		Cache:  l.Cache.Node - l.Cache.Charged,
	}
}

// Order returns the roles in the order of [Roles], then unknown ones by name.
func Order[V any](rows map[record.Role]V) []record.Role {
	place := func(role record.Role) uint { return uint(slices.Index(Roles, role)) } // −1 sorts last
	return slices.SortedFunc(maps.Keys(rows), func(a, b record.Role) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	})
}
