package attribution

import (
	"path"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// GroupCharge is a cgroup that memory or CPU time of members is charged to.
type GroupCharge struct {
	Path   string
	Charge record.Charge
	Lane   int // of its sandbox; -1 for one that several share
	// Nested: a group above it is in the list with the same charge, and its
	// figures hold this one's.
	Nested bool
}

// Charges lists the groups that the members and their threads are charged to
// for memory and CPU time, by path. What was asked for as a sandbox's group is
// in the list also where only groups below it hold processes.
//
//   - pod: the group that was asked for, or below it. Where none was asked for,
//     it is that of the first process, or one that bears the container's id and
//     holds its processes or its vCPUs.
//   - overhead: another group of the sandbox's own. It bears the container's id,
//     or it is one of Kata's overhead groups, or all processes in it are this
//     sandbox's and what the container holds is among them.
//   - shared: all others. In a group of shims or monitors alone, such as the one in which
//     podman on cgroupfs has those of all its containers, others were before, and left
//     what they are charged for.
func (s *Snapshot) Charges(members []record.Process, boxes []Sandbox) []GroupCharge {
	var daemons []int
	for i := range members {
		if members[i].Role == record.RoleDaemon {
			daemons = append(daemons, members[i].Pid)
		}
	}
	r := s.facts(boxes, daemons)
	byLane := map[int]int{} // lane → box
	for i := range boxes {
		byLane[boxes[i].Lane] = i
	}
	use := map[string]*users{}
	for i := range members {
		p := &members[i]
		for _, set := range p.Groups {
			for _, where := range procs.Billed(set.Paths) {
				use[where] = use[where].with(p, byLane, len(set.Threads) > 0 && len(p.Groups) > 1)
			}
		}
	}
	owners := r.owners(members, byLane, use)
	var out []GroupCharge
	for where, u := range use {
		charge, box := r.charge(where, u, owners)
		one := GroupCharge{Path: where, Charge: charge, Lane: -1}
		if box >= 0 && len(u.boxes) == 1 {
			one.Lane = boxes[box].Lane
		}
		out = append(out, one)
	}
	for i := range boxes {
		group := path.Clean("/" + boxes[i].Group)
		listed := slices.ContainsFunc(out, func(g GroupCharge) bool { return g.Path == group })
		below := slices.ContainsFunc(out, func(g GroupCharge) bool { return procs.Within(g.Path, group) })
		if r.asked[i] && below && !listed {
			out = append(out, GroupCharge{Path: group, Charge: record.ChargePod, Lane: r.lane(group)})
		}
	}
	slices.SortFunc(out, func(a, b GroupCharge) int { return strings.Compare(a.Path, b.Path) })
	for i := range out {
		upwards(path.Dir(out[i].Path), func(dir string) bool {
			j, ok := slices.BinarySearchFunc(out, dir, func(g GroupCharge, dir string) int { return strings.Compare(g.Path, dir) })
			out[i].Nested = ok && out[j].Charge == out[i].Charge
			return !out[i].Nested
		})
	}
	return out
}

// users are the members that a group is charged for.
type users struct {
	boxes  map[int]bool // -1: daemons
	inside bool         // what a container holds is among them: its processes, a guest
}

// with adds a member; part: only some of its threads are in the group.
func (u *users) with(p *record.Process, byLane map[int]int, part bool) *users {
	if u == nil {
		u = &users{boxes: map[int]bool{}}
	}
	box, ok := byLane[p.Lane]
	if !ok {
		box = -1
	}
	u.boxes[box] = true
	switch p.Role {
	case record.RoleWorkload, record.RolePause, record.RoleSentry, record.RoleGofer:
		u.inside = true
	case record.RoleVMM:
		u.inside = true
	case record.RoleShim:
		u.inside = u.inside || part || p.VCPU > 0
	}
	return u
}

// charge decides for one group.
func (r *facts) charge(where string, u *users, owners map[string]int) (record.Charge, int) {
	if where == "/" {
		return record.ChargeShared, -1
	}
	if box, ok := r.within(where); ok {
		return record.ChargePod, box
	}
	id, _, bears := named(where, func(id string) bool { _, ok := r.ids[id]; return ok })
	owner, own := owners[where]
	switch {
	case bears && overhead(where):
		return record.ChargeOverhead, r.ids[id]
	case bears && !r.asked[r.ids[id]] && u.inside:
		return record.ChargePod, r.ids[id]
	case bears:
		return record.ChargeOverhead, r.ids[id]
	case !own || !u.inside || r.shared(where):
		return record.ChargeShared, -1
	case !r.asked[owner] && !overhead(where):
		return record.ChargePod, owner
	}
	return record.ChargeOverhead, owner
}

// owners finds the groups in which, and below which, all processes of the node
// are one sandbox's. A group that only threads are in is that of their process.
func (r *facts) owners(members []record.Process, byLane map[int]int, users map[string]*users) map[string]int {
	boxOf := make(map[int]int, len(members)) // pid → box
	for i := range members {
		if box, ok := byLane[members[i].Lane]; ok {
			boxOf[members[i].Pid] = box
		}
	}
	out := make(map[string]int, len(users))
	foreign := map[string]bool{}
	for where, u := range users {
		for box := range u.boxes {
			if len(u.boxes) == 1 && box >= 0 {
				out[where] = box
			}
		}
	}
	seen := map[*Groups]map[int]bool{}
	for _, p := range r.Processes {
		box, ok := boxOf[p.Pid]
		if !ok {
			box = -1
		}
		if seen[p.Groups][box] {
			continue
		}
		if seen[p.Groups] == nil {
			seen[p.Groups] = map[int]bool{}
		}
		seen[p.Groups][box] = true
		for _, where := range p.Groups.All {
			upwards(where, func(dir string) bool {
				if owner, listed := out[dir]; listed && owner != box {
					foreign[dir] = true
				}
				return true
			})
		}
	}
	for where := range foreign {
		delete(out, where)
	}
	return out
}

// lane is that of the box whose own group this is; -1 where several boxes were
// given the same.
func (r *facts) lane(where string) int {
	found := -1
	for i := range r.boxes {
		if r.asked[i] && path.Clean("/"+r.boxes[i].Group) == where {
			if found >= 0 {
				return -1
			}
			found = r.boxes[i].Lane
		}
	}
	return found
}
