package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Close makes the books of one phase: memory as it changed from before the
// sandboxes to the phase's end, CPU time from the phase's begin to its end. The
// begin may be nil: then no CPU time is known. The Uncertainty
// is left 0: [Visit.Close] knows it.
//
// An error says that there are no books at all. What a reading lacks makes them
// incomplete, and is never filled in.
func Close(before, begin, end *record.Reading) (Ledger, error) {
	switch {
	case end == nil:
		return Ledger{}, errors.New("the phase was not read at its end: there is nothing to close")
	case end.Failure != nil:
		return Ledger{}, fmt.Errorf("the phase failed: %s", end.Failure.Detail)
	case before == nil:
		return Ledger{}, errors.New("nothing was read before the sandboxes were made: no change is known")
	case before.Host.Total <= 0 || end.Host.Total <= 0:
		return Ledger{}, errors.New("the node's memory was not read")
	case end.Time < before.Time:
		return Ledger{}, fmt.Errorf("the phase's end (%d ns) was read before its visit began (%d ns)", end.Time, before.Time)
	}
	if begin == nil {
		begin = &record.Reading{Time: end.Time} // in which no time went by
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

// books is a ledger in the making.
type books struct {
	before, begin, end *record.Reading
	was, began, is     map[identity]*record.Process // of these three

	l    Ledger
	rows map[record.Role]*Row
	// Of the sandboxes' own groups those that no other of them holds, which
	// account memory and CPU time.
	memoryTops, cpuTops    []*record.Group
	accounted              int64                     // of the kernel's rows, what the node's books know by kind
	boxKernel, boxUnmapped int64                     // of the sandboxes, without their daemons
	twice                  map[*record.Process]int64 // bytes of huge pages that are counted with another, see once
	placed                 map[Place]bool            // groups that are counted in a place
}

// identity tells a process from a later one with its pid.
type identity struct {
	pid   int
	start uint64
}

func idOf(p *record.Process) identity { return identity{p.Pid, p.Start} }

func byIdentity(r *record.Reading) map[identity]*record.Process {
	all := map[identity]*record.Process{}
	for i := range r.Processes {
		all[idOf(&r.Processes[i])] = &r.Processes[i]
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

// memory enters what processes have: each by its PSS, less what it had before.
// One that was there before and is gone has given its memory back.
func (b *books) memory() {
	for i := range b.end.Processes {
		p := &b.end.Processes[i]
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
			r.rule("its huge pages that another process maps too are counted there")
		}
		r.Memory = r.Memory.plus(m)
	}
	for i := range b.before.Processes {
		p := &b.before.Processes[i]
		switch {
		case b.is[idOf(p)] != nil:
		case !p.Read:
			b.l.Complete = false
		default:
			r := b.row(p.Role)
			r.Memory = r.Memory.minus(has(p))
			r.rule("less a process that was there before and is gone")
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

// unread is how much was there and could not be read. What had ended by the time
// it was to be read is not missing: on any node processes end all the time.
func unread(p *record.Problems) int { return p.Denied + p.Broken }

// everyLane is false where a sandbox has neither a process nor a group, or where
// a daemon may have been replaced by another while it was read before.
func (b *books) everyLane() bool {
	lanes := map[int]bool{}
	vanished := b.before.Problems.Gone+b.before.Problems.Reused > 0
	for i := range b.end.Processes {
		p := &b.end.Processes[i]
		if p.Lane >= 0 {
			lanes[p.Lane] = true
		} else if vanished && p.Role == record.RoleDaemon && b.was[idOf(p)] == nil {
			return false
		}
	}
	for i := range b.end.Groups {
		if g := &b.end.Groups[i]; g.Lane >= 0 {
			lanes[g.Lane] = true
		}
	}
	return len(lanes) >= b.end.Sandboxes
}

// backwards counts a counter that went back.
func (b *books) backwards(what string) {
	b.l.Problems.Backwards++
	b.l.Problems.Note(what + " went back within the phase")
}

// total orders the rows, adds them up and sets them against the node's change.
func (b *books) total() {
	h, h0 := &b.end.Host, &b.before.Host
	l := &b.l
	l.Node, l.Others = h.Used()-h0.Used(), h.Others-h0.Others
	others := b.row(record.RoleOthers)
	others.Processes, others.Memory.Anon = h.OthersCount, l.Others
	if l.Related = h.OthersCount; h.Related != nil {
		l.Related = *h.Related
	}
	others.rule("the change of RssAnon of every process that is not the target's")
	b.othersCPU(others)

	var sum Memory
	for _, role := range order(b.rows) {
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
	if h.Anon > 0 && h0.Anon > 0 { // there is no node without any
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

// order is that of [Roles], and then by name.
func order[V any](rows map[record.Role]V) []record.Role {
	place := func(role record.Role) uint { return uint(slices.Index(Roles, role)) } // of −1 behind all
	return slices.SortedFunc(maps.Keys(rows), func(a, b record.Role) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	})
}
