package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

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
	guests := map[int]bool{} // lanes with a sentry, which starts and ends the workload's processes
	for p := range Each(begin.Processes) {
		guests[p.Lane] = guests[p.Lane] || p.Role == record.RoleSentry
	}
	is := byIdentity(end)
	first, gone := map[holder]bool{}, map[int]*End{}
	// The earliest process of a role comes first.
	for _, p := range slices.SortedFunc(Each(begin.Processes), func(a, b *record.Process) int {
		return cmp.Or(cmp.Compare(strconv.FormatBool(a.Ended), strconv.FormatBool(b.Ended)), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Pid, b.Pid))
	}) {
		at := holder{p.Lane, p.Role}
		if first[at] || !livesBy(p, guests[p.Lane]) {
			continue
		}
		first[at] = true
		if now := is[idOf(p)]; now != nil && !now.Ended {
			continue
		}
		if gone[p.Lane] == nil {
			gone[p.Lane] = &End{p, true}
		}
		// If several exited, report the earliest one. Again requires that all were replaced.
		gone[p.Lane].Again = gone[p.Lane].Again && slices.ContainsFunc(end.Processes, func(q record.Process) bool {
			return q.Lane == p.Lane && q.Role == p.Role && q.Start > p.Start && !q.Ended
		})
	}
	for _, lane := range slices.Sorted(maps.Keys(gone)) {
		all = append(all, *gone[lane])
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
