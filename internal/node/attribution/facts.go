package attribution

import (
	"path"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// Sandbox is what an engine or a runtime says of the container, or of the pod
// with its container, on one lane.
type Sandbox struct {
	Lane int
	// IDs are those of the container and of the pod, in full: what shims,
	// monitors and VMMs have among their arguments.
	IDs []string
	// Workload and Pause are the first processes of the container and of the
	// pod on this machine, 0 where there is none or it is not known.
	Workload, Pause int
	// More are processes of the workload that are in no cgroup of its own:
	// commands run by the host target.
	More []int
	// Group is the cgroup that was asked for, of the pod where there is one,
	// as a path from the root of the hierarchies ("/tare-run-x/runc/c-0"); ""
	// where the engine chooses: then it is that of Workload. Everything in or
	// below it is charged to the pod.
	Group string
}

// Member is one process of a sandbox, or a daemon.
type Member struct {
	*Process
	Lane int
	Role record.Role
	Rule string // the fact that decided the role
	// Sets are the sets of cgroups that its threads are in.
	Sets []record.Membership
	// VCPUs are its threads that run a guest, and how that was told.
	VCPUs    []int
	VCPURule string
}

// facts say by which facts a process belongs to a sandbox.
type facts struct {
	*Snapshot
	boxes   []Sandbox
	daemons map[int]bool
	ids     map[string]int  // id → box
	groups  map[string]int  // cgroup of a box's own, the pod's → box
	asked   []bool          // of a box: its Group is what was asked for, not derived
	first   map[int]int     // Workload, Pause → box
	cached  map[*Groups]int // → box, or -1
}

func (s *Snapshot) facts(boxes []Sandbox, daemons []int) *facts {
	r := &facts{
		Snapshot: s, boxes: boxes, daemons: map[int]bool{}, ids: map[string]int{}, groups: map[string]int{},
		asked: make([]bool, len(boxes)), first: map[int]int{}, cached: map[*Groups]int{},
	}
	for _, pid := range daemons {
		if pid > 0 {
			r.daemons[pid] = true
		}
	}
	derive := false
	for i := range boxes {
		b := &boxes[i]
		for _, id := range b.IDs {
			if id != "" {
				r.ids[id] = i
			}
		}
		for _, pid := range []int{b.Workload, b.Pause} {
			if pid > 0 {
				r.first[pid] = i
			}
		}
		if group := path.Clean("/" + b.Group); group != "/" {
			r.asked[i] = true
			r.groups[group] = i
			// Kata renames the last element where it puts itself there too.
			r.groups[path.Join(path.Dir(group), "kata_"+path.Base(group))] = i
		} else {
			derive = true
		}
	}
	if derive {
		r.derive()
	}
	return r
}

// derive finds the groups of boxes for which none was asked: that of their
// first process, and those that bear one of their ids.
func (r *facts) derive() {
	bearing := func(id string) bool { i, ok := r.ids[id]; return ok && !r.asked[i] }
	seen := map[*Groups]bool{}
	for _, p := range r.Processes {
		if seen[p.Groups] {
			continue
		}
		// conmon's own scope bears the id too, and holds nothing of the container.
		if role, ok := p.role(); ok && p.depth() == 0 && (role == record.RoleMonitor || role == record.RoleShim) {
			continue
		}
		seen[p.Groups] = true
		for _, where := range p.Groups.All {
			if id, dir, ok := named(where, bearing); ok && !overhead(where) && !r.shared(dir) {
				r.groups[dir] = r.ids[id]
			}
		}
	}
	for i := range r.boxes {
		if !r.asked[i] {
			r.deriveFirst(i)
		}
	}
}

// deriveFirst goes by the box's first processes.
func (r *facts) deriveFirst(box int) {
	for _, pid := range []int{r.boxes[box].Workload, r.boxes[box].Pause} {
		p := r.byPid[pid]
		if p == nil {
			continue
		}
		if _, beside := p.role(); beside {
			continue // Kata: engines give the VMM's pid
		}
		for _, where := range p.Groups.All {
			if _, taken := r.within(where); !taken && !overhead(where) && !r.shared(where) && !r.holdsParent(p, where) {
				r.groups[where] = box
			}
		}
	}
}

// shared tells whether a group, or one below it, holds what is no sandbox's:
// the daemons, the first process of the machine, this program.
func (r *facts) shared(where string) bool {
	holds := func(pid int) bool {
		p := r.byPid[pid]
		if p == nil {
			return false
		}
		for _, g := range p.Groups.All {
			if procs.Within(g, where) {
				return true
			}
		}
		return false
	}
	for pid := range r.daemons {
		if holds(pid) {
			return true
		}
	}
	return where == "/" || holds(1) || r.self > 0 && holds(r.self)
}

// holdsParent tells whether the parent of a first process is in its group and
// is not its monitor: then the group is that of whoever ran it.
func (r *facts) holdsParent(p *Process, where string) bool {
	parent := r.byPid[p.PPid]
	if parent == nil {
		return false
	}
	if _, beside := parent.role(); beside {
		return false
	}
	for _, g := range parent.Groups.All {
		if procs.Within(g, where) {
			return true
		}
	}
	return false
}

// within finds the box whose own group a path is in or below.
func (r *facts) within(where string) (box int, ok bool) {
	upwards(where, func(dir string) bool {
		box, ok = r.groups[dir]
		return !ok
	})
	return box, ok
}

// boxOf is the box in whose group a process is, -1 for none.
func (r *facts) boxOf(p *Process) int {
	if box, ok := r.cached[p.Groups]; ok {
		return box
	}
	box := -1
	for _, where := range p.Groups.All {
		if i, ok := r.within(where); ok {
			box = i
			break
		}
	}
	r.cached[p.Groups] = box
	return box
}

// mentioned is the box that a process's arguments name, -1 for none.
func (r *facts) mentioned(p *Process) int {
	id, ok := p.mentions(func(id string) bool { _, ok := r.ids[id]; return ok })
	if !ok {
		return -1
	}
	return r.ids[id]
}
