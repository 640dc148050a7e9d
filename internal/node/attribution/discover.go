package attribution

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// Found is a container, or a pod with its containers, that was found on the
// node without anybody saying that it is there.
type Found struct {
	Name   string  // the first 12 characters of an id, a pod's "pod UID"
	Pod    string  // the pod's id, "" for a container alone
	Engine string  // docker, podman, containerd, cri-o, isula, kubernetes; kata, gvisor; oci
	Rule   string  // the fact that told
	Box    Sandbox // its Lane is its place in the list
}

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
	into    *entry // it was found to be another's
	ids     []string
	dirs    []string // cgroups of its containers
	pod     string
	podDir  string
	engine  string
	rank    int // how much the engine's name is worth
	rule    string
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
	a.guess(b.engine, b.rule, b.rank)
	return a
}

// guess keeps the engine that is known best.
func (e *entry) guess(engine, rule string, rank int) {
	if engine != "" && rank > e.rank {
		e.engine, e.rule, e.rank = engine, rule, rank
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
		if p.Depth() == 0 && !seen[p.Groups] {
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
		id, engine, rule, rank := p.serves()
		if id == "" || len(id) > 255 {
			continue
		}
		// What runs inside a container is part of it, whatever it says. Of Kata's
		// own those in a pid namespace have a shim that is not.
		if _, sentry := p.gVisor(); p.Depth() > 0 && !sentry {
			continue
		}
		e := d.entry(id, "")
		e.guess(engine, rule, rank)
		d.of[p.Pid] = e
		if role, ok := p.role(); ok && role == record.RoleShim {
			e.shims = append(e.shims, id)
		}
	}
}

// serves reads from a process's arguments which container it stands beside, and
// which engine that is likely to be.
func (p *Process) serves() (id, engine, rule string, rank int) {
	name, args := p.command()
	if _, ok := p.gVisor(); ok {
		if len(args) == 0 {
			return "", "", "", 0
		}
		return args[len(args)-1], "gvisor", "runsc's sentry", rankNamespace
	}
	role, ok := p.role()
	if !ok {
		return "", "", "", 0
	}
	switch {
	case name == "isulad-shim":
		if len(args) > 0 {
			return args[0], "isula", "isulad-shim", rankArgument
		}
	case role == record.RoleShim:
		id = procs.Flag(args, "-id", "--id")
		namespace := procs.Flag(args, "-namespace", "--namespace")
		switch {
		case strings.Contains(name, "kata"):
			return id, "kata", "Kata's shim", rankArgument + 1
		case namespace == "moby":
			return id, "docker", "a shim in containerd's namespace moby", rankArgument
		}
		return id, "containerd", "a shim of containerd's", rankProgram
	case role == record.RoleMonitor:
		id = procs.Flag(args, "-c", "--cid")
		switch all := strings.Join(args, " "); {
		case strings.Contains(all, "crio"):
			return id, "cri-o", "conmon with folders of CRI-O's", rankArgument
		case strings.Contains(procs.Flag(args, "--exit-command"), "podman"):
			return id, "podman", "conmon that calls podman at the end", rankArgument
		}
		return id, "podman", "conmon", rankNamespace
	default:
		return kataID(args), "kata", "a VMM or virtiofsd with folders of Kata's", rankProgram
	}
	return "", "", "", 0
}

// kataID finds the sandbox in the arguments of a VMM or virtiofsd of Kata's:
// /run/vc/vm/ID/…, /run/kata-containers/shared/sandboxes/ID/…, /run/kata/ID/…,
// -name sandbox-ID.
func kataID(args []string) string {
	for _, arg := range args {
		for _, before := range []string{"/vc/vm/", "/sandboxes/", "/run/kata/", "/vc/firecracker/"} {
			if _, rest, ok := strings.Cut(arg, before); ok {
				if id := rest[:strings.IndexFunc(rest+"/", procs.NotOfID)]; id != "" {
					return id
				}
			}
		}
	}
	if id, ok := strings.CutPrefix(procs.Flag(args, "-name"), "sandbox-"); ok {
		id, _, _ = strings.Cut(id, ",")
		return id
	}
	return ""
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
			d.entry(a.id, "").guess(a.engine, a.rule, rankGroup)
			continue
		}
		if a.pod != "" {
			e := d.entry(a.id, a.podDir)
			e.pod, e.podDir = a.pod, a.podDir
			d.joins(e, p, a.engine, a.rule)
			continue
		}
		d.container(p, a.id, a.dir, a.engine, a.rule, rankGroup)
	}
}

// joins adds a process to a pod.
func (d *discovery) joins(e *entry, p *Process, engine, rule string) {
	rank := rankGroup
	if engine == "kubernetes" {
		rank = rankNamespace
	}
	e.guess(engine, rule, rank)
	e.members = append(e.members, p)
}

// container adds a process in a container's cgroup. One whose parent is a shim
// belongs to that one's pod.
func (d *discovery) container(p *Process, id, dir, engine, rule string, rank int) {
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
	e.guess(engine, rule, rank)
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
		if p.Depth() == 0 || taken[p] || p.Ended() {
			continue
		}
		for _, where := range p.Groups.All {
			if d.foreign[where] || overhead(where) {
				continue
			}
			dir := d.ownOf(where)
			d.container(p, path.Base(dir), dir, "oci", "in another pid namespace, in a cgroup of its own", rankNamespace)
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

// list makes the entries to what is found, in the order of their first
// processes.
func (d *discovery) list() []Found {
	var out []Found
	for _, e := range d.all {
		if e.into != nil {
			continue
		}
		slices.Sort(e.ids)
		f := Found{Pod: e.pod, Engine: e.engine, Rule: e.rule, Box: Sandbox{IDs: e.ids}}
		switch {
		case e.pod != "" && e.engine != "podman":
			f.Name = "pod " + e.pod
		case e.pod != "":
			f.Name = "pod " + short(e.pod)
		case len(e.ids) > 0:
			f.Name = short(e.ids[0])
		default:
			continue
		}
		switch {
		case e.podDir != "":
			f.Box.Group = e.podDir
		case len(e.dirs) == 1:
			f.Box.Group = e.dirs[0]
		}
		d.firsts(e, &f.Box)
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b Found) int {
		return cmp.Or(strings.Compare(a.Engine, b.Engine), strings.Compare(a.Name, b.Name))
	})
	for i := range out {
		out[i].Box.Lane = i
	}
	return out
}

// firsts finds the first processes of a pod and of its first container.
func (d *discovery) firsts(e *entry, b *Sandbox) {
	slices.SortFunc(e.members, func(a, b *Process) int { return cmp.Compare(a.Pid, b.Pid) })
	in := map[int]bool{}
	var firsts []*Process
	for _, p := range e.members {
		gvisor, _ := p.gVisor()
		if _, beside := p.role(); beside && p.Depth() == 0 || p.isInit() || gvisor == record.RoleGofer {
			continue
		}
		in[p.Pid] = true
		if !in[p.PPid] {
			firsts = append(firsts, p)
		}
	}
	for _, p := range firsts {
		switch {
		case in[p.PPid]: // its parent has the higher pid
		case p.isPause() || e.isSandbox(p):
			if b.Pause == 0 {
				b.Pause = p.Pid
			}
		case b.Workload == 0:
			b.Workload = p.Pid
		}
	}
}

// isSandbox tells whether a process is in the cgroup of the pod's sandbox
// itself: of several containers the one whose id the shim was given.
func (e *entry) isSandbox(p *Process) bool {
	if len(e.ids) < 2 {
		return false
	}
	for _, where := range p.Groups.All {
		if _, _, ok := named(where, func(id string) bool { return slices.Contains(e.shims, id) }); ok {
			return true
		}
	}
	return false
}

func short(id string) string {
	if hexadecimal(id) {
		return id[:12]
	}
	return id
}
