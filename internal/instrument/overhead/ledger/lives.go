package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tare-bench/tare/record"
)

// End is the exit of a process that a sandbox depends on.
type End struct {
	Process *record.Process // of the reading at the begin of the phase
	Again   bool            // a later process of the same role runs in the same sandbox
}

// Ends returns one End per sandbox that lost a process it depends on. The process
// exited between the two readings, or before the first and was not reaped yet.
func Ends(begin, end *record.Reading) (all []End) {
	type holder struct {
		lane int
		role record.Role
	}
	first := map[holder]*record.Process{}
	guests := map[int]bool{} // lanes with a sentry, which starts and ends the workload's processes
	for p := range Each(begin.Processes) {
		guests[p.Lane] = guests[p.Lane] || p.Role == record.RoleSentry
	}
	order := func(a, b *record.Process) int {
		if a.Ended != b.Ended {
			return map[bool]int{false: -1, true: 1}[a.Ended]
		}
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Pid, b.Pid))
	}
	for p := range Each(begin.Processes) {
		at := holder{p.Lane, p.Role}
		if old := first[at]; livesBy(p, guests[p.Lane]) && (old == nil || order(p, old) < 0) {
			first[at] = p
		}
	}
	is := byIdentity(end)
	gone := map[int]End{}
	for at, p := range first {
		if now := is[idOf(p)]; now != nil && !now.Ended {
			continue
		}
		again := slices.ContainsFunc(end.Processes, func(q record.Process) bool {
			return q.Lane == at.lane && q.Role == at.role && q.Start > p.Start && !q.Ended
		})
		// If several exited, report the earliest one. Again requires that all were replaced.
		e, known := gone[at.lane]
		if !known || order(p, e.Process) < 0 {
			e.Process = p
		}
		e.Again = again && (e.Again || !known)
		gone[at.lane] = e
	}
	for _, lane := range slices.Sorted(maps.Keys(gone)) {
		all = append(all, gone[lane])
	}
	return all
}

// Lives reports whether the sandbox has a process that it depends on.
func Lives(r *record.Reading, lane int) bool {
	return slices.ContainsFunc(r.Processes, func(p record.Process) bool { return p.Lane == lane && !p.Ended && livesBy(&p, false) })
}

// Failed returns the failure of a phase in which sandboxes ended, or nil.
func Failed(begin, end *record.Reading) *record.Failure {
	ends := Ends(begin, end)
	if len(ends) == 0 {
		return nil
	}
	p := ends[0].Process
	f := &record.Failure{Kind: record.FailWorkload, Detail: fmt.Sprintf("%d of %d sandboxes exited while they were measured: %s %s (process %d) is gone", len(ends), end.Sandboxes, p.Role, p.Name, p.Pid)}
	if before, after := begin.Host.OOMKills, end.Host.OOMKills; before != nil && after != nil && *after > *before {
		f.Detail += fmt.Sprintf("; the kernel killed %d processes of the node for lack of memory in that time", *after-*before)
	}
	return f
}

// livesBy reports whether a sandbox cannot exist without a process of p's role.
func livesBy(p *record.Process, guest bool) bool {
	switch p.Role {
	case record.RolePause, record.RoleShim, record.RoleMonitor, record.RoleVMM, record.RoleSentry:
		return p.Lane >= 0
	case record.RoleWorkload:
		return p.Lane >= 0 && !guest
	}
	return false
}
