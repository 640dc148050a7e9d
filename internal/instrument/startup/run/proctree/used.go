package proctree

import (
	"cmp"
	"slices"

	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/record"
)

// samples returns the CPU usage of a running process. It counts from the exec of its
// program. For a process that existed before, it counts from the first sample.
func (t *tree) samples(i int) (all []record.BusyAt) {
	n := &t.nodes[i]
	base := n.since
	if n.ended != 0 || base < 0 && !n.root {
		return nil
	}
	for _, u := range t.asked.Used {
		cpu, ok := u.CPU[n.pid]
		if !ok || u.At < n.born && !n.root {
			continue
		}
		if base < 0 {
			base = cpu
		}
		all = append(all, record.BusyAt{At: u.At, CPU: max(cpu-base, 0)})
	}
	return all
}

// bends removes samples that have the same usage as the samples before and after them.
func bends(all []record.BusyAt) (out []record.BusyAt) {
	for i, u := range all {
		if i == 0 || i == len(all)-1 || u.CPU != all[i-1].CPU || u.CPU != all[i+1].CPU {
			out = append(out, u)
		}
	}
	return out
}

// own returns the CPU time of the start's processes and of the daemons that served it,
// counted from the beginning of the call.
func (t *tree) own(place map[int]bool) []record.BusyAt {
	var steps []record.BusyAt // increases of the usage
	add := func(at, more int64) {
		if more > 0 {
			steps = append(steps, record.BusyAt{At: at, CPU: more})
		}
	}
	if !t.ended(place, add) {
		return nil
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		stays := place[i] && !n.root && (n.ended == 0 || t.asked.Ended != 0 && n.ended > t.asked.Ended)
		if !stays && !(n.root && t.rep(i) == i && t.serves(i, place)) {
			continue
		}
		used := t.samples(i)
		if len(used) == 0 {
			return nil // usage unknown
		}
		last := int64(0)
		for _, u := range used {
			add(u.At, u.CPU-last)
			last = max(last, u.CPU)
		}
	}
	slices.SortStableFunc(steps, func(a, b record.BusyAt) int { return cmp.Compare(a.At, b.At) })
	all, sum := []record.BusyAt{{At: t.asked.Began}}, int64(0)
	for _, s := range steps {
		sum += s.CPU
		all = used(all, s.At, sum)
	}
	if last := t.asked.Ended; last > all[len(all)-1].At {
		all = append(all, record.BusyAt{At: last, CPU: sum})
	}
	return all
}

// ended calls add for the CPU time that the kernel reports when a process of the start
// executes a program or ends. told reports whether the kernel reported any.
func (t *tree) ended(place map[int]bool, add func(at, more int64)) (told bool) {
	counted := map[int]int64{} // pid → CPU time reported so far
	for j := range t.events {
		e := &t.events[j]
		if !place[t.rep(t.whose[j])] || e.Time < t.asked.Began || t.asked.Ended != 0 && e.Time > t.asked.Ended {
			continue
		}
		switch last, known := counted[e.Pid]; {
		case e.Kind == tracer.Fork:
			counted[e.Pid] = 0
		case e.CPU < 0:
		default:
			if told = true; known {
				add(e.Time, e.CPU-last)
			}
			counted[e.Pid] = e.CPU
		}
	}
	return told
}

// servedBy maps an engine's client to its daemon.
var servedBy = map[string]string{"docker": "dockerd", "nerdctl": "containerd", "ctr": "containerd", "isula": "isulad"}

// serves reports whether a daemon or an existing shim worked for the start. It did if a
// process of the start is below it. Otherwise a client in the start must have used it,
// and it must be the only daemon of this name.
func (t *tree) serves(root int, place map[int]bool) bool {
	if place[root] {
		return true
	}
	name, asked, same := t.nodes[root].name, false, 0
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.root && n.name == name && t.rep(i) == i {
			same++
		}
		asked = asked || place[i] && t.isClient(i) && servedBy[n.program] == name
	}
	return asked && same == 1
}
