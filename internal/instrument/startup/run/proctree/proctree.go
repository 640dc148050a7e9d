// Package proctree selects the processes that belong to one start of a container, and
// classifies them.
//
// A process belongs to the start if it descends from the started command. A descendant
// of an engine's daemon or shim belongs to the start if its arguments contain a
// container id of this start. The arguments of the processes in between count as well.
// Without an id, it belongs to the start if no other container was started at the
// time.
//
// The ids of a start are those that the command printed or requested. Other ids are
// accepted only up to the number of engine clients in the start that could have
// requested them. A process is classified by its program, its arguments and its
// parent.
//
// Only programs, verbs and ids are retained from the arguments.
package proctree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/record"
)

// Most is the maximum number of processes per start. Later processes are dropped.
const Most = 4096

// Late is the maximum time (ns) between the return of a call and the exec of the
// workload it started.
const Late = int64(100 * time.Millisecond)

// Asked describes a start: the call, its time, and the information known in advance.
type Asked struct {
	Began  int64 // start of the call, ns CLOCK_MONOTONIC
	Ended  int64 // 0: the call has not ended
	Client int   // pid of the started command; 0 if the caller uses an API itself
	Roots  []Root
	// Starts is set if the call requests exactly one container or pod from the roots,
	// whatever its client. This holds for calls made by a target itself. For a client
	// command, the arguments of the command decide.
	Starts bool
	// Containers are the known ids of the start, including a pod's id. Related ids are
	// found automatically. So are ids that the client's children named in their arguments
	// or passed to runtimes.
	//
	// Other containers that were created below the roots at the time are also accepted, up
	// to the number of engine clients among those children. Without roots, this applies to
	// all containers of the machine. An API call counts as one client. If there are more
	// containers than clients, none is accepted, and Missing contains "ambiguous".
	Containers []string
	// Used has samples of CPU usage within the call, in time order.
	Used []Used
	// Guests are the pids of processes that run a guest at the end, under any name.
	Guests []int
}

// Used is the CPU time (ns) of processes since their birth, by pid, at one time.
type Used struct {
	At  int64
	CPU map[int]int64
}

// Root is an existing process whose children may belong to the start: a daemon or a
// shim.
type Root struct {
	Pid  int
	Kind string // record's Kind constants
	Name string
}

// Start is the observed part of a start.
//   - Processes are in order of birth. A parent outside the start is 0.
//   - Busy has the events of the start, the last event before the window and the first
//     one after it.
//   - First is the exec of the workload.
//   - Containers are in order of appearance.
//   - Sandbox is the id of the pod or of the container.
type Start struct {
	record.Start
	// Own is like Busy, but only for the processes of the start and the daemons that
	// served them. It includes the work of those daemons for other starts. The kernel
	// reports the usage of a process when it ends or executes a program; Used covers
	// running processes. Own is empty if the usage of any process is unknown.
	Own []record.BusyAt
}

// Gather selects the processes of a start from the events of all processes and
// classifies them. The events may be in any order.
func Gather(events []tracer.Event, a Asked) Start {
	t := grow(events, a)
	t.classify()
	t.inherit()
	t.claim()
	return t.start()
}

// start assembles the result.
func (t *tree) start() Start {
	kept, dropped := t.kept()
	k := Start{Start: record.Start{Missing: t.missing}}
	missing := func(what string, count int, detail string) {
		if count > 0 {
			k.Missing = append(k.Missing, record.Missing{What: what, Count: int64(count), Detail: detail})
		}
	}
	place := make(map[int]bool, len(kept))
	for _, i := range kept {
		place[i] = true
	}
	orphans, mute := 0, 0
	var first string // of calls with unreadable arguments
	for _, i := range kept {
		n := &t.nodes[i]
		k.Processes = append(k.Processes, t.process(i, place))
		if n.unborn && n.before < 0 && !n.root && n.pid != t.asked.Client {
			orphans++
		}
		if n.gone {
			mute++
			first = cmp.Or(first, n.name)
		}
	}
	missing(record.MissingProcesses, dropped, fmt.Sprintf("processes after the first %d of the start", Most))
	missing("unreadable", mute, "processes that ended before their arguments could be read; runtime calls among them may be unknown; first: "+first)
	missing("unborn", orphans, "processes without a fork event, shown from their exec")
	k.Containers, k.Sandbox = t.containers(kept)
	k.First = t.first(kept)
	k.Busy, k.Events = t.busy(place)
	k.Own = t.own(place)
	return k
}

// kept returns the nodes of the start that existed in the window, by birth. dropped is
// the number of nodes left out because of the limit [Most].
func (t *tree) kept() (kept []int, dropped int) {
	with := map[int]bool{} // roots with children in the start
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.root || t.rep(i) != i || !t.belongs[i] || !t.lived(n) {
			continue
		}
		kept = append(kept, i)
		if t.under[i] >= 0 {
			with[t.under[i]] = true
		}
	}
	for i := range t.nodes {
		if t.nodes[i].root && t.rep(i) == i && with[i] {
			kept = append(kept, i)
		}
	}
	rank := map[bool]int{true: -1} // roots first
	slices.SortStableFunc(kept, func(a, b int) int {
		x, y := &t.nodes[a], &t.nodes[b]
		return cmp.Or(cmp.Compare(x.born, y.born), rank[x.root]-rank[y.root], a-b)
	})
	if len(kept) > Most {
		kept, dropped = kept[:Most], len(kept)-Most
	}
	return kept, dropped
}

// lived reports whether a process existed in the window. A workload may execute
// shortly after the call that started it returned.
func (t *tree) lived(n *node) bool {
	end := t.asked.Ended
	late := end != 0 && n.born > end && (!n.workload || n.born-end > Late)
	return !late && (n.ended == 0 || n.ended >= t.asked.Began)
}

func (t *tree) process(i int, place map[int]bool) record.StartProcess {
	n := &t.nodes[i]
	p := record.StartProcess{
		Pid: n.pid, Kind: n.kind, Name: cmp.Or(n.name, n.kind), Program: n.program, Verb: n.verb, Container: t.about(i),
		Born: n.born, Exec: n.exec, Ended: n.ended, CPU: -1, Exit: n.exit,
	}
	if n.since >= 0 && n.used >= n.since {
		p.CPU = n.used - n.since
	}
	if used := t.samples(i); len(used) > 0 {
		p.CPU = used[len(used)-1].CPU
		if p.Kind == record.KindVMM || p.Kind == record.KindVirtiofsd {
			p.Used = bends(used)
		}
	}
	for up := t.up(i); up >= 0; up = t.up(up) {
		if place[up] {
			p.Parent = t.nodes[up].pid
			break
		}
	}
	return p
}

// about returns the id of the container that a process works for. It is the process's
// own id or the id of an ancestor.
func (t *tree) about(i int) string { return cmp.Or(t.nodes[i].id, t.above[i]) }

// containers returns the ids in order of appearance, and that of the pod: the one with the
// network, or else the first.
func (t *tree) containers(kept []int) (ids []string, sandbox string) {
	for _, i := range kept {
		n := &t.nodes[i]
		if n.id != "" && !slices.Contains(ids, n.id) && len(ids) < 256 {
			ids = append(ids, n.id)
		}
		if n.kind == record.KindCNI {
			sandbox = cmp.Or(sandbox, n.id)
		}
	}
	if len(ids) > 0 {
		sandbox = cmp.Or(sandbox, ids[0])
	}
	return ids, sandbox
}

// first returns the time of the workload's exec. It ignores the pause container of a
// pod.
func (t *tree) first(kept []int) int64 {
	var first, pause int64
	pods := t.pods(kept)
	for _, i := range kept {
		n := &t.nodes[i]
		late := t.asked.Ended != 0 && n.exec-t.asked.Ended > Late
		if !n.workload || n.session || late || n.exec < t.asked.Began {
			continue
		}
		to := &first
		if pods[t.about(i)] {
			to = &pause
		}
		if *to == 0 || n.exec < *to {
			*to = n.exec
		}
	}
	return cmp.Or(first, pause)
}

// pods returns the ids of pause containers. Other containers are below them or use
// their network.
func (t *tree) pods(kept []int) map[string]bool {
	pods, networks := map[string]bool{}, map[string]bool{} // ids; networks: whether it has one
	for _, i := range kept {
		n := &t.nodes[i]
		if n.id == "" {
			continue
		}
		if above := t.above[i]; above != "" && above != n.id {
			pods[above] = true
		}
		networks[n.id] = networks[n.id] || n.kind == record.KindCNI
	}
	if slices.Contains(slices.Collect(maps.Values(networks)), false) {
		for id, has := range networks {
			pods[id] = pods[id] || has
		}
	}
	return pods
}

// busy returns the CPU time used at the events of the start. The values never
// decrease.
func (t *tree) busy(place map[int]bool) (all []record.BusyAt, events int64) {
	mine := func(j int) bool { return place[t.rep(t.whose[j])] }
	before, after := -1, -1
	for j := range t.events {
		e := &t.events[j]
		switch {
		case mine(j):
			events++
		case e.Busy < 0:
		case e.Time <= t.asked.Began:
			before = j
		case t.asked.Ended != 0 && e.Time >= t.asked.Ended && after < 0:
			after = j
		}
	}
	var most int64
	for j := range t.events {
		if e := &t.events[j]; e.Busy >= 0 && (j == before || j == after || mine(j)) {
			most = max(most, e.Busy)
			all = used(all, e.Time, most)
		}
	}
	return all, events
}

// used appends a value to all. It replaces a last value of the same time.
func used(all []record.BusyAt, at, cpu int64) []record.BusyAt {
	if n := len(all); n > 0 && all[n-1].At == at {
		all = all[:n-1]
	}
	return append(all, record.BusyAt{At: at, CPU: cpu})
}

// brief shortens an id for display.
func brief(id string) string {
	if len(id) > 12 && hexadecimal(id) {
		return id[:12]
	}
	return id
}
