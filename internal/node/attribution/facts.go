package attribution

import (
	"path"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// Sandbox is what the engine or runtime reports about one lane: a container, or a pod with
// its container.
type Sandbox struct {
	Lane int
	// IDs are the full ids of the container and of the pod, as in the arguments of
	// shims, monitors and VMMs.
	IDs []string
	// Workload and Pause are the host pids of the first processes of the container and
	// of the pod. They are 0 if there is none or it is unknown.
	Workload, Pause int
	// More lists processes that belong to the workload but are outside its cgroup, such as
	// commands of the host target.
	More []int
	// Group is the requested cgroup of the pod, or of the container if there is no pod. It
	// is a path from the root of the hierarchies, such as "/tare-run-x/runc/c-0". If Group
	// is "", the engine chooses the cgroup, which is then that of Workload. All usage in or
	// below it is charged to the pod.
	Group string
}

// Member is a process of a sandbox, or a daemon.
type Member struct {
	*Process
	Lane int
	Role record.Role
	Rule string // fact that decided the role
	// Sets lists the sets of cgroups of its threads.
	Sets     []record.Membership
	VCPUs    []int  // threads that run a guest
	VCPURule string // fact that identified them
}

// facts maps the processes of a snapshot to sandboxes.
type facts struct {
	*Snapshot
	boxes     []Sandbox
	daemons   []int
	ids       map[string]int  // id → box
	groups    map[string]int  // cgroup of a container or pod → box
	requested []string        // by box: its Group if that was requested, "" if it is derived
	cached    map[*Groups]int // → box, or -1
}

func (s *Snapshot) facts(boxes []Sandbox, daemons []int) *facts {
	r := &facts{
		Snapshot: s, boxes: boxes, daemons: daemons, ids: map[string]int{}, groups: map[string]int{},
		requested: make([]string, len(boxes)), cached: map[*Groups]int{},
	}
	for i := range boxes {
		b := &boxes[i]
		for _, id := range b.IDs {
			if id != "" {
				r.ids[id] = i
			}
		}
		if group := path.Clean("/" + b.Group); group != "/" {
			r.requested[i] = group
			r.groups[group] = i
			// Kata renames the last element if it puts its own processes there too.
			r.groups[path.Join(path.Dir(group), "kata_"+path.Base(group))] = i
		}
	}
	if slices.Contains(r.requested, "") {
		r.derive()
	}
	return r
}

// derive finds the groups of boxes without a requested one. These are the groups of
// their first processes, and groups with one of their ids in the name.
func (r *facts) derive() {
	derived := func(id string) bool { i, ok := r.ids[id]; return ok && r.requested[i] == "" }
	seen := map[*Groups]bool{}
	for _, p := range r.Processes {
		if seen[p.Groups] {
			continue
		}
		// conmon's scope has the id in its name too, but no process of the container.
		if role := p.helperRole(); p.depth() == 0 && (role == record.RoleMonitor || role == record.RoleShim) {
			continue
		}
		seen[p.Groups] = true
		for _, where := range p.Groups.All {
			if id, dir, ok := named(where, derived); ok && !isOverhead(where) && !r.shared(dir) {
				r.groups[dir] = r.ids[id]
			}
		}
	}
	for i := range r.boxes {
		if r.requested[i] == "" {
			r.deriveFirst(i)
		}
	}
}

// deriveFirst adds the groups of the first processes of a box.
func (r *facts) deriveFirst(box int) {
	for _, pid := range []int{r.boxes[box].Workload, r.boxes[box].Pause} {
		p := r.byPid[pid]
		if p == nil || p.helperRole() != "" {
			continue // with Kata, engines report the VMM's pid
		}
		for _, where := range p.Groups.All {
			if _, taken := r.boxAround(where); !taken && !isOverhead(where) && !r.shared(where) && !r.holdsParent(p, where) {
				r.groups[where] = box
			}
		}
	}
}

// shared reports whether a daemon, pid 1 or this program is in a group or below it.
func (r *facts) shared(where string) bool {
	return where == "/" || slices.ContainsFunc(append(slices.Clone(r.daemons), 1, r.self), func(pid int) bool {
		p := r.byPid[pid]
		return p != nil && p.Groups.InSubtree(where)
	})
}

// holdsParent reports whether the group contains the parent of a first process, and
// that parent is not its monitor. The group then belongs to the program that ran the
// process.
func (r *facts) holdsParent(p *Process, where string) bool {
	parent := r.byPid[p.PPid]
	return parent != nil && parent.helperRole() == "" && parent.Groups.InSubtree(where)
}

// boxAround returns the box of a group or of its nearest ancestor with a box.
func (r *facts) boxAround(where string) (box int, ok bool) {
	for dir := range upwards(where) {
		if box, ok = r.groups[dir]; ok {
			break
		}
	}
	return box, ok
}

// boxOf returns the box of a process by its cgroups, or -1.
func (r *facts) boxOf(p *Process) int {
	if box, ok := r.cached[p.Groups]; ok {
		return box
	}
	box := -1
	for _, where := range p.Groups.All {
		if i, ok := r.boxAround(where); ok {
			box = i
			break
		}
	}
	r.cached[p.Groups] = box
	return box
}

// mentioned returns the box whose id is among a process's arguments, or -1. If the program
// has a flag for the id, only the flag counts. For commands, whole arguments count. For
// other helpers, any part of an argument that has the form of an id counts.
func (r *facts) mentioned(p *Process) int {
	name, args := p.command()
	role := p.role()
	words := args
	if id := procs.ContainerOf(name, role, args); id != "" {
		words = []string{id}
	} else if role == "" && !p.isCommand() {
		return -1
	} else if role != "" {
		words = nil
		for _, arg := range args {
			for _, part := range procs.Parts(arg) {
				words = append(words, part, strings.TrimPrefix(part, "sandbox-")) // Kata's name for QEMU's machine
			}
		}
	}
	for _, word := range words {
		if box, ok := r.ids[word]; ok {
			return box
		}
	}
	return -1
}
