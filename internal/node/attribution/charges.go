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
	Lane   int // lane of its sandbox; -1 if several share it
	// Nested reports that an ancestor in the list has the same charge, and its figures
	// include this group's.
	Nested bool
}

// Charges lists, by path, the groups that members and their threads are charged to for
// memory and CPU time. A requested group of a sandbox is listed even if only groups below
// it have processes.
//
//   - pod: the requested group, or below it. Without a request it is the group of the
//     first process, or one that has the container's id in its name and contains its
//     processes or vCPUs.
//   - overhead: another group that only this sandbox uses. Its name has the container's id,
//     or it is one of Kata's overhead groups, or it contains processes of this container
//     and of no other sandbox.
//   - shared: all others. A group of only shims or monitors is shared too: podman on
//     cgroupfs uses one for all containers, and ended ones left charges in it.
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
				use[where] = use[where].add(p, byLane, len(set.Threads) > 0 && len(p.Groups) > 1)
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
		below := slices.ContainsFunc(out, func(g GroupCharge) bool { return procs.InSubtree(g.Path, group) })
		if r.requested[i] && below && !listed {
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

// users are the members that are charged to a group.
type users struct {
	boxes  map[int]bool // -1: daemons
	inside bool         // they include processes of a container or a guest
}

// add adds a member. Part means that only some of its threads are in the group.
func (u *users) add(p *record.Process, byLane map[int]int, part bool) *users {
	if u == nil {
		u = &users{boxes: map[int]bool{}}
	}
	box, ok := byLane[p.Lane]
	if !ok {
		box = -1
	}
	u.boxes[box] = true
	switch p.Role {
	case record.RoleWorkload, record.RolePause, record.RoleSentry, record.RoleGofer, record.RoleVMM:
		u.inside = true
	case record.RoleShim:
		u.inside = u.inside || part || p.VCPU > 0
	}
	return u
}

// charge returns the charge of one group and its box.
func (r *facts) charge(where string, u *users, owners map[string]int) (record.Charge, int) {
	if where == "/" {
		return record.ChargeShared, -1
	}
	if box, ok := r.boxAround(where); ok {
		return record.ChargePod, box
	}
	id, _, hasID := named(where, func(id string) bool { _, ok := r.ids[id]; return ok })
	owner, owned := owners[where]
	switch {
	case hasID && u.inside && !isOverhead(where) && !r.requested[r.ids[id]]:
		return record.ChargePod, r.ids[id]
	case hasID:
		return record.ChargeOverhead, r.ids[id]
	case !owned || !u.inside || r.shared(where):
		return record.ChargeShared, -1
	case !r.requested[owner] && !isOverhead(where):
		return record.ChargePod, owner
	}
	return record.ChargeOverhead, owner
}

// owners returns the box of each group if all processes in and below the group belong to
// it. Threads count as their process.
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

// lane returns the lane of the box with this requested group, or -1 if several boxes
// share it.
func (r *facts) lane(where string) int {
	found := -1
	for i := range r.boxes {
		if r.requested[i] && path.Clean("/"+r.boxes[i].Group) == where {
			if found >= 0 {
				return -1
			}
			found = r.boxes[i].Lane
		}
	}
	return found
}
