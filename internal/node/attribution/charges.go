package attribution

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// Charges lists, by path, the groups that members and their threads are charged to for
// memory and CPU time. A requested group of a sandbox is listed even if only groups below
// it have processes.
//
//   - pod: the requested group and the groups below it. Without a request it is the group
//     of the first process, or a group that has the container's id in its name and
//     contains the container's processes or vCPUs.
//   - overhead: another group that only this sandbox uses. Its name has the container's id,
//     or it is one of Kata's overhead groups, or it contains processes of this container
//     and of no other sandbox.
//   - shared: all others. A group that contains only shims or monitors is shared too:
//     podman on cgroupfs uses one such group for all containers, and it still has charges
//     of containers that have ended.
//
// A group is nested if one of its ancestors is in the list with the same charge. The figures
// of that ancestor include those of the group. The lane of a group that several sandboxes
// share is -1.
func (s *Snapshot) Charges(members []Member, boxes []Sandbox) []record.Group {
	var daemons []int
	for i := range members {
		if members[i].Role == record.RoleDaemon {
			daemons = append(daemons, members[i].Pid)
		}
	}
	r := s.facts(boxes, daemons)
	byLane := map[int]int{} // lane → box + 1
	for i := range boxes {
		byLane[boxes[i].Lane] = i + 1
	}
	use := map[string]*users{}
	for i := range members {
		m := &members[i]
		for _, set := range m.Sets {
			for _, where := range procs.Billed(set.Paths) {
				use[where] = use[where].add(m, byLane[m.Lane]-1, len(set.Threads) > 0 && len(m.Sets) > 1)
			}
		}
	}
	owners := r.owners(members, byLane, use)
	var out []record.Group
	for where, u := range use {
		charge, box := r.charge(where, u, owners)
		one := record.Group{Path: where, Charge: charge, Lane: -1}
		if box >= 0 && !u.several {
			one.Lane = boxes[box].Lane
		}
		out = append(out, one)
	}
	for i := range boxes {
		group := r.requested[i]
		listed := slices.ContainsFunc(out, func(g record.Group) bool { return g.Path == group })
		below := slices.ContainsFunc(out, func(g record.Group) bool { return procs.InSubtree(g.Path, group) })
		if group != "" && below && !listed {
			out = append(out, record.Group{Path: group, Charge: record.ChargePod, Lane: r.lane(group)})
		}
	}
	slices.SortFunc(out, func(a, b record.Group) int { return strings.Compare(a.Path, b.Path) })
	for i := range out {
		for dir := range upwards(path.Dir(out[i].Path)) {
			j, ok := slices.BinarySearchFunc(out, dir, func(g record.Group, dir string) int { return strings.Compare(g.Path, dir) })
			out[i].Nested = out[i].Nested || ok && out[j].Charge == out[i].Charge
		}
	}
	return out
}

// users are the members that are charged to a group.
type users struct {
	box     int  // box of the first member; -1 if it is a daemon
	several bool // members belong to several boxes
	inside  bool // members include processes of a container or a guest
}

// add adds a member. part is true if only some of the member's threads are in the group.
func (u *users) add(m *Member, box int, part bool) *users {
	u = cmp.Or(u, &users{box: box})
	u.several = u.several || u.box != box
	switch m.Role {
	case record.RoleWorkload, record.RolePause, record.RoleSentry, record.RoleGofer, record.RoleVMM:
		u.inside = true
	case record.RoleShim:
		u.inside = u.inside || part || len(m.VCPUs) > 0
	}
	return u
}

// charge returns how a group is charged, and the box that it is charged to, or -1.
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
	case hasID && u.inside && !isOverhead(where) && r.requested[r.ids[id]] == "":
		return record.ChargePod, r.ids[id]
	case hasID:
		return record.ChargeOverhead, r.ids[id]
	case !owned || !u.inside || r.shared(where):
		return record.ChargeShared, -1
	case r.requested[owner] == "" && !isOverhead(where):
		return record.ChargePod, owner
	}
	return record.ChargeOverhead, owner
}

// owners maps a group to a box if all processes in and below the group belong to that box. A
// thread counts as part of its process.
func (r *facts) owners(members []Member, byLane map[int]int, users map[string]*users) map[string]int {
	boxOf := make(map[int]int, len(members)) // pid → box + 1
	for i := range members {
		boxOf[members[i].Pid] = byLane[members[i].Lane]
	}
	out := make(map[string]int, len(users))
	for where, u := range users {
		if !u.several && u.box >= 0 {
			out[where] = u.box
		}
	}
	type use struct {
		groups *Groups
		box    int
	}
	seen := map[use]bool{}
	for _, p := range r.Processes {
		of := use{p.Groups, boxOf[p.Pid] - 1}
		if seen[of] {
			continue
		}
		seen[of] = true
		for _, where := range p.Groups.All {
			for dir := range upwards(where) {
				if owner, listed := out[dir]; listed && owner != of.box {
					delete(out, dir)
				}
			}
		}
	}
	return out
}

// lane returns the lane of the box with this requested group, or -1 if several boxes
// share it.
func (r *facts) lane(group string) int {
	i := slices.Index(r.requested, group)
	if slices.Contains(r.requested[i+1:], group) {
		return -1
	}
	return r.boxes[i].Lane
}
