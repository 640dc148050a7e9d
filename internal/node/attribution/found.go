package attribution

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/record"
)

// Found is a discovered container, or a pod with its containers.
type Found struct {
	Name   string  // the first 12 characters of an id; "pod UID" for a pod
	Pod    string  // the pod's id, "" for a single container
	Engine string  // docker, podman, containerd, cri-o, isula, kubernetes; kata, gvisor; oci
	Rule   string  // fact that identified the engine
	Box    Sandbox // its Lane is its index in the list
}

// list converts the entries, sorted by engine and name.
func (d *discovery) list() []Found {
	var out []Found
	for _, e := range d.all {
		if e.into != nil {
			continue
		}
		slices.Sort(e.ids)
		f := Found{Pod: e.pod, Engine: e.engine, Rule: e.rule, Box: Sandbox{IDs: e.ids}}
		switch {
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
		d.setFirstProcesses(e, &f.Box)
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

// setFirstProcesses sets the first processes of a pod and of its first container.
func (d *discovery) setFirstProcesses(e *entry, b *Sandbox) {
	slices.SortFunc(e.members, func(a, b *Process) int { return cmp.Compare(a.Pid, b.Pid) })
	in := map[int]bool{}
	var firsts []*Process
	for _, p := range e.members {
		if p.helperRole() != "" && p.depth() == 0 || d.deviceOf(p) != "" || p.isInit() || p.gVisorRole() == record.RoleGofer {
			continue
		}
		in[p.Pid] = true
		if !in[p.PPid] {
			firsts = append(firsts, p)
		}
	}
	for _, p := range firsts {
		switch {
		case in[p.PPid]: // the parent has a higher pid
		case p.isPause() || e.isSandbox(p):
			b.Pause = cmp.Or(b.Pause, p.Pid)
		case b.Workload == 0:
			b.Workload = p.Pid
		}
	}
}

// isSandbox reports whether a process is in the cgroup of the pod's sandbox. That
// cgroup has the shim's id.
func (e *entry) isSandbox(p *Process) bool {
	return len(e.ids) > 1 && slices.ContainsFunc(p.Groups.All, func(where string) bool { return Names(where, e.shims) })
}

func short(id string) string {
	if hexadecimal(id) {
		return id[:12]
	}
	return id
}
