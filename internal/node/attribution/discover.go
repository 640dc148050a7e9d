package attribution

import (
	"path"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Sandboxes finds every container and pod of the node: by the shims, monitors,
// VMMs and sentries that name one; by cgroups of engines' forms; and by
// processes in a pid namespace and a cgroup that hold nothing else. A pod and
// its containers are one entry. Containers within containers are part of the
// outer one.
//
// A container that shares the host's pid namespace, in a cgroup of no engine's
// form and without a shim or a monitor, cannot be told from a plain process.
func (s *Snapshot) Sandboxes() []Found {
	d := &discovery{Snapshot: s, byID: map[string]*entry{}, byDir: map[string]*entry{}, of: map[int]*entry{}}
	d.foreign = d.notContained()
	d.byArguments()
	d.byGroups()
	d.byNamespace()
	d.byMonitors()
	return d.list()
}

type entry struct {
	into   *entry // it was found to be another's
	ids    []string
	dirs   []string // cgroups of its containers
	pod    string
	podDir string
	guess
	shims   []string // the ids that its shims were given: that of a pod's sandbox
	members []*Process
}

type discovery struct {
	*Snapshot
	all     []*entry
	byID    map[string]*entry
	byDir   map[string]*entry
	of      map[int]*entry  // of shims, monitors, and processes in cgroups
	foreign map[string]bool // groups with a process in this pid namespace, in or below them
	direct  map[string]bool // groups with a process in them
}

func (e *entry) last() *entry {
	for e.into != nil {
		e = e.into
	}
	return e
}

// entry returns the one for an id and a cgroup, each "" where not known. Two
// that turn out to be one are merged.
func (d *discovery) entry(id, dir string) *entry {
	var e *entry
	if x := d.byID[id]; id != "" && x != nil {
		e = x.last()
	}
	if x := d.byDir[dir]; dir != "" && x != nil {
		e = d.merge(x.last(), e)
	}
	if e == nil {
		e = &entry{}
		d.all = append(d.all, e)
	}
	if id != "" && !slices.Contains(e.ids, id) {
		e.ids = append(e.ids, id)
	}
	if id != "" {
		d.byID[id] = e
	}
	if dir != "" {
		d.byDir[dir] = e
	}
	return e
}

func (d *discovery) merge(a, b *entry) *entry {
	if b == nil || a == b {
		return a
	}
	b.into = a
	for _, id := range b.ids {
		if !slices.Contains(a.ids, id) {
			a.ids = append(a.ids, id)
		}
	}
	for _, dir := range b.dirs {
		if !slices.Contains(a.dirs, dir) {
			a.dirs = append(a.dirs, dir)
		}
	}
	a.members = append(a.members, b.members...)
	a.shims = append(a.shims, b.shims...)
	if a.pod == "" {
		a.pod, a.podDir = b.pod, b.podDir
	}
	a.better(b.guess)
	return a
}

// guess is which engine it is, by which fact, and how much that is worth.
type guess struct {
	engine, rule string
	rank         int
}

// better keeps the engine that is known best.
func (g *guess) better(other guess) {
	if other.engine != "" && other.rank > g.rank {
		*g = other
	}
}

// How much a guess at the engine is worth: that of an argument, of a cgroup's
// form, of a namespace.
const (
	rankNamespace = 1 + iota
	rankGroup
	rankProgram
	rankArgument
)

// notContained lists the groups that hold a process of this very pid namespace.
func (d *discovery) notContained() map[string]bool {
	out := map[string]bool{}
	seen := map[*Groups]bool{}
	for _, p := range d.Processes {
		if p.depth() == 0 && !seen[p.Groups] {
			seen[p.Groups] = true
			for _, where := range p.Groups.All {
				upwards(where, func(dir string) bool { out[dir] = true; return true })
			}
		}
	}
	return out
}

// byArguments goes by what stands beside containers.
func (d *discovery) byArguments() {
	for _, p := range d.Processes {
		id, of := p.serves()
		if id == "" || len(id) > 255 {
			continue
		}
		// What runs inside a container is part of it, whatever it says. Of Kata's
		// own those in a pid namespace have a shim that is not.
		if _, sentry := p.gVisor(); p.depth() > 0 && !sentry {
			continue
		}
		e := d.entry(id, "")
		e.better(of)
		d.of[p.Pid] = e
		if role, ok := p.role(); ok && role == record.RoleShim {
			e.shims = append(e.shims, id)
		}
	}
}

// byGroups goes by cgroups of the engines' forms.
func (d *discovery) byGroups() {
	type answer struct {
		place
		ok bool
	}
	seen := map[*Groups]answer{}
	for _, p := range d.Processes {
		a, known := seen[p.Groups]
		if !known {
			for _, where := range p.Groups.All {
				if a.place, a.ok = locate(where); a.ok {
					break
				}
			}
			seen[p.Groups] = a
		}
		if !a.ok || p.Kernel {
			continue
		}
		if a.beside { // Kata's overhead names the sandbox, and is not its group
			d.entry(a.id, "").better(guess{a.engine, a.rule, rankGroup})
			continue
		}
		if a.pod != "" {
			e := d.entry(a.id, a.podDir)
			e.pod, e.podDir = a.pod, a.podDir
			rank := rankGroup
			if a.engine == "kubernetes" {
				rank = rankNamespace
			}
			e.better(guess{a.engine, a.rule, rank})
			e.members = append(e.members, p)
			continue
		}
		d.container(p, a.id, a.dir, guess{a.engine, a.rule, rankGroup})
	}
}

// container adds a process in a container's cgroup. One whose parent is a shim
// belongs to that one's pod.
func (d *discovery) container(p *Process, id, dir string, of guess) {
	e := d.entry(id, dir)
	if parent := d.byPid[p.PPid]; parent != nil && d.of[parent.Pid] != nil {
		if role, ok := parent.role(); ok && role == record.RoleShim {
			if shim := d.of[parent.Pid].last(); shim != e {
				e = d.merge(shim, e)
			}
		}
	}
	if !slices.Contains(e.dirs, dir) {
		e.dirs = append(e.dirs, dir)
	}
	e.better(of)
	e.members = append(e.members, p)
}

// byNamespace goes by processes in another pid namespace, in a cgroup of their
// own: what a bare runtime leaves behind.
func (d *discovery) byNamespace() {
	taken := map[*Process]bool{}
	d.direct = map[string]bool{}
	for _, p := range d.Processes {
		for _, where := range p.Groups.All {
			d.direct[where] = true
		}
	}
	for _, e := range d.all {
		for _, p := range e.members {
			taken[p] = true
		}
	}
	for _, p := range d.Processes {
		if p.depth() == 0 || taken[p] || p.Ended() {
			continue
		}
		for _, where := range p.Groups.All {
			if d.foreign[where] || overhead(where) {
				continue
			}
			dir := d.ownOf(where)
			d.container(p, path.Base(dir), dir, guess{"oci", "in another pid namespace, in a cgroup of its own", rankNamespace})
			break
		}
	}
}

// byMonitors joins the containers of a pod of CRI-O's that is in no kubelet's
// cgroup: its conmons stand in the pod's own cgroup, right above the containers'.
func (d *discovery) byMonitors() {
	for _, p := range d.Processes {
		e := d.of[p.Pid]
		if e == nil {
			continue
		}
		if e = e.last(); e.engine != "cri-o" || e.podDir != "" && !slices.Contains(p.Groups.All, e.podDir) {
			continue
		}
		for _, dir := range e.dirs {
			if above := path.Dir(dir); slices.Contains(p.Groups.All, above) {
				id := e.ids[0]
				d.byID[id] = e
				e = d.entry(id, above)
				e.podDir = above
				e.members = append(e.members, p)
				break
			}
		}
	}
}

// ownOf is the group of the container that a group is in: the uppermost on the
// way to it that has processes of its own, since a container may make groups
// below that one.
func (d *discovery) ownOf(where string) string {
	own := where
	upwards(path.Dir(where), func(dir string) bool {
		if d.foreign[dir] {
			return false
		}
		if d.direct[dir] {
			own = dir
		}
		return true
	})
	return own
}
