package ledger

import (
	"cmp"

	"github.com/tare-bench/tare/record"
)

// Lives says of how many sandboxes a process that they live by ended between two
// readings: restarted where another of its role has begun since in the same sandbox,
// else ended.
func Lives(begin, end *record.Reading) (restarted, ended int) {
	type holder struct {
		lane int
		role record.Role
	}
	first := map[holder]*record.Process{}
	guests := map[int]bool{} // lanes whose workload's processes are a sentry's to make and end
	for i := range begin.Processes {
		guests[begin.Processes[i].Lane] = guests[begin.Processes[i].Lane] || begin.Processes[i].Role == record.RoleSentry
	}
	for i := range begin.Processes {
		p := &begin.Processes[i]
		at := holder{p.Lane, p.Role}
		if old := first[at]; livesBy(p, guests[p.Lane]) && (old == nil || cmp.Or(cmp.Compare(p.Start, old.Start), cmp.Compare(p.Pid, old.Pid)) < 0) {
			first[at] = p
		}
	}
	is := byIdentity(end)
	gone := map[int]bool{} // lane → whether it lives again
	for at, p := range first {
		if is[idOf(p)] != nil {
			continue
		}
		again := false
		for i := range end.Processes {
			q := &end.Processes[i]
			again = again || q.Lane == at.lane && q.Role == at.role && q.Start > p.Start
		}
		before, known := gone[at.lane]
		gone[at.lane] = again && (before || !known)
	}
	for _, again := range gone {
		if again {
			restarted++
		} else {
			ended++
		}
	}
	return restarted, ended
}

// livesBy tells whether a sandbox is there no more without a process of its kind.
func livesBy(p *record.Process, guest bool) bool {
	switch p.Role {
	case record.RolePause, record.RoleShim, record.RoleMonitor, record.RoleVMM, record.RoleSentry:
		return p.Lane >= 0
	case record.RoleWorkload:
		return p.Lane >= 0 && !guest
	}
	return false
}
