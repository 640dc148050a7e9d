package attribution

import (
	"cmp"
	"slices"
	"strings"

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
		_, serving := d.serving(p)
		if _, beside := p.role(); beside && p.depth() == 0 || serving || p.isInit() || gvisor == record.RoleGofer {
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
