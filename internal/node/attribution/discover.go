package attribution

import (
	"path"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Sandboxes finds every container and pod of the node. It uses three sources: the
// arguments of shims, monitors, VMMs and sentries; the cgroup paths of known engines;
// and processes with their own pid namespace and cgroup. A pod and its containers are
// one entry. Nested containers belong to the outer one.
// A container in the host's pid namespace is not found if it has neither a shim nor a
// monitor and its cgroup path is not of a known form.
func (s *Snapshot) Sandboxes() []Found {
	d := &discovery{Snapshot: s, byID: map[string]*entry{}, byDir: map[string]*entry{}, helpers: map[int]*entry{}, host: map[string]bool{}, direct: map[string]bool{}}
	d.groups()
	d.byArguments()
	d.byGroups()
	d.byNamespace()
	d.byMonitors()
	return d.list()
}

type entry struct {
	into   *entry // entry that this one was merged into
	ids    []string
	dirs   []string // cgroups of its containers
	pod    string
	podDir string
	guess
	shims   []string // ids in its shims' arguments, such as the id of a pod's sandbox
	members []*Process
}

type discovery struct {
	*Snapshot
	all     []*entry
	byID    map[string]*entry
	byDir   map[string]*entry
	helpers map[int]*entry  // by pid of a shim, monitor, VMM or sentry
	host    map[string]bool // groups with a process of this pid namespace in or below them
	direct  map[string]bool // groups with a process in them
}

func (e *entry) resolve() *entry {
	for e.into != nil {
		e = e.into
	}
	return e
}

// entry returns the entry of an id and a cgroup; either may be "". It merges two
// entries if they turn out to be the same sandbox.
func (d *discovery) entry(id, dir string) *entry {
	var e *entry
	if x := d.byID[id]; id != "" && x != nil {
		e = x.resolve()
	}
	if x := d.byDir[dir]; dir != "" && x != nil {
		e = d.merge(x.resolve(), e)
	}
	if e == nil {
		e = &entry{}
		d.all = append(d.all, e)
	}
	if id != "" {
		e.ids = union(e.ids, id)
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
	a.ids = union(a.ids, b.ids...)
	a.dirs = union(a.dirs, b.dirs...)
	a.members = append(a.members, b.members...)
	a.shims = append(a.shims, b.shims...)
	if a.pod == "" {
		a.pod, a.podDir = b.pod, b.podDir
	}
	a.better(b.guess)
	return a
}

// union appends the elements of more that are not in list.
func union(list []string, more ...string) []string {
	return append(list, slices.DeleteFunc(slices.Clone(more), func(s string) bool { return slices.Contains(list, s) })...)
}

// guess is the probable engine, the fact that suggests it, and that fact's rank.
type guess struct {
	engine, rule string
	rank         int
}

// better replaces g if other has a higher rank.
func (g *guess) better(other guess) {
	if other.engine != "" && other.rank > g.rank {
		*g = other
	}
}

// Ranks of the facts that identify an engine.
const (
	rankNamespace = 1 + iota
	rankGroup
	rankProgram
	rankArgument
)

// groups finds the groups with processes, and those with a process of this pid namespace
// in or below them.
func (d *discovery) groups() {
	for _, p := range d.Processes {
		for _, where := range p.Groups.All {
			d.direct[where] = true
			for dir := range upwards(where) {
				if p.depth() > 0 || d.host[dir] {
					break
				}
				d.host[dir] = true
			}
		}
	}
}

// byArguments finds sandboxes by the arguments of shims, monitors, VMMs and sentries.
func (d *discovery) byArguments() {
	for _, p := range d.Processes {
		id, of := p.servedContainer()
		if id == "" || len(id) > 255 {
			continue
		}
		// A process inside a container can have any arguments. Kata's own processes in a
		// pid namespace have a shim outside of it.
		if p.depth() > 0 && p.gVisorRole() == "" {
			continue
		}
		e := d.entry(id, "")
		e.better(of)
		d.helpers[p.Pid] = e
		if p.helperRole() == record.RoleShim {
			e.shims = append(e.shims, id)
		}
	}
}

// byGroups finds sandboxes by the cgroup paths that engines use.
func (d *discovery) byGroups() {
	seen := map[*Groups]place{}
	for _, p := range d.Processes {
		a, known := seen[p.Groups]
		for _, where := range p.Groups.All {
			if known {
				break
			}
			a, known = locate(where)
		}
		seen[p.Groups] = a
		of := guess{a.engine, a.rule, rankGroup}
		switch {
		case a == place{} || p.Kernel:
		case a.overhead: // its path has the sandbox's id, but it is not the sandbox's group
			d.entry(a.id, "").better(of)
		case a.pod != "":
			e := d.entry(a.id, a.podDir)
			e.pod, e.podDir = a.pod, a.podDir
			if a.engine == "kubernetes" {
				of.rank = rankNamespace
			}
			e.better(of)
			e.members = append(e.members, p)
		default:
			d.container(p, a.id, a.dir, of)
		}
	}
}

// container adds a process in a container's cgroup. A child of a shim belongs to the
// shim's pod.
func (d *discovery) container(p *Process, id, dir string, of guess) {
	e := d.entry(id, dir)
	if shim := d.helpers[p.PPid]; shim != nil && d.byPid[p.PPid].helperRole() == record.RoleShim {
		e = d.merge(shim.resolve(), e)
	}
	e.dirs = union(e.dirs, dir)
	e.better(of)
	e.members = append(e.members, p)
}

// byNamespace finds the containers of bare runtimes. Their processes are in another pid
// namespace, in a cgroup without processes of the host.
func (d *discovery) byNamespace() {
	taken := map[*Process]bool{}
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
			if d.host[where] || isOverhead(where) {
				continue
			}
			dir := d.containerGroup(where)
			d.container(p, path.Base(dir), dir, guess{"oci", "in another pid namespace, in a cgroup of its own", rankNamespace})
			break
		}
	}
}

// byMonitors joins the containers of a CRI-O pod outside the kubelet's cgroups. The
// conmons of such a pod are in the pod's cgroup, the parent of the containers' cgroups.
func (d *discovery) byMonitors() {
	for _, p := range d.Processes {
		e := d.helpers[p.Pid]
		if e == nil {
			continue
		}
		if e = e.resolve(); e.engine != "cri-o" || e.podDir != "" && !slices.Contains(p.Groups.All, e.podDir) {
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

// containerGroup returns the container's group for a group in or below it. This is the
// uppermost ancestor with processes, because a container may create groups below its
// own.
func (d *discovery) containerGroup(where string) string {
	top := where
	for dir := range upwards(path.Dir(where)) {
		if d.host[dir] {
			break
		}
		if d.direct[dir] {
			top = dir
		}
	}
	return top
}
