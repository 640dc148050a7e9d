// Package proctree tells of all that happened to the processes of a machine what
// belongs to one start of a container, and what each of those processes is.
//
// A process belongs that descends from the command that was started. One that
// descends from the engine's daemon or shim belongs if it or one of the processes
// between the two has a container's id of this start among its arguments; or, where
// such a container was started and no other meanwhile, without. Ids of the start
// are those that were printed or asked for by it, and others only as far as there
// are clients of engines in it that could have asked for them. What a process is,
// is told by its program, its arguments and who started it.
//
// Arguments are looked at and forgotten: what is kept of them are programs, verbs
// and ids.
package proctree

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/record"
)

// Most is how many processes of a start are kept, the first ones.
const Most = 4096

// Late is how much later (ns) than the return of the call that started it a
// workload may be executed.
const Late = int64(100 * time.Millisecond)

// Asked is a start: what was called, when, and what is known of it beforehand.
type Asked struct {
	Began  int64 // the call's window, ns CLOCK_MONOTONIC
	Ended  int64 // 0: the call has not ended
	Client int   // pid of the command that was started; 0 of a call of an API, which the caller itself makes
	Roots  []Root
	// Starts says that the roots were asked for one container or pod, whatever the
	// client is: a target's own calls do. Of a client that is a command its
	// arguments say so.
	Starts bool
	// Containers are the ids that the start is known to have made, a pod's too.
	// Others that hang together with them are found, and those that the client's
	// own children called runtimes for, or named among their arguments. Of what
	// else was made below the roots meanwhile (without roots: by anybody) as many
	// are taken as there were clients of engines among those children, a call of an
	// API being one; where there are more none is, and Missing says "ambiguous".
	Containers []string
	// Used is what processes had used at moments within the call, in order of time.
	Used []Used
	// Guests are the pids of processes that run a guest at the end, whatever they are
	// called.
	Guests []int
}

// Used is how much CPU time (ns) processes had used by a moment since each was born, by
// pid.
type Used struct {
	At  int64
	CPU map[int]int64
}

// Root is a process that was there before, whose children may belong to the
// start: a daemon, a shim.
type Root struct {
	Pid  int
	Kind string // record's Kind constants
	Name string
}

// Start is what of a start its processes tell: themselves, in the order of Born (a parent
// that is not among them is 0); Busy at their events, and at the last before and the first
// after the window; First, the workload's exec; the containers in the order of their
// appearance, and the sandbox, which is the pod's id or the container's.
type Start struct {
	record.Start
	// Own is as Busy what these processes used themselves, and the daemons that served
	// them: what they did for others is in it, what other daemons did is not. The kernel
	// says it when they end or execute another program, and Used of those that stay; where
	// it does not say it of one there is none.
	Own []record.BusyAt
}

// Gather finds the processes of a start in what was told of all processes, and
// says what each of them is. The events may be in any order.
func Gather(events []tracer.Event, a Asked) Start {
	t := grow(events, a)
	t.classify()
	t.inherit()
	c := t.claim()
	return t.start(c)
}

// start puts together what is handed out.
func (t *tree) start(c *claims) Start {
	kept, dropped := t.kept(c)
	k := Start{Start: record.Start{Missing: c.missing}}
	if dropped > 0 {
		k.Missing = append(k.Missing, record.Missing{What: record.MissingProcesses, Count: int64(dropped),
			Detail: fmt.Sprintf("processes after the first %d of the start", Most)})
	}
	place := make(map[int]bool, len(kept))
	for _, i := range kept {
		place[i] = true
	}
	orphans, mute := int64(0), int64(0)
	var first string // of the mute ones
	for _, i := range kept {
		n := &t.nodes[i]
		k.Processes = append(k.Processes, t.process(i, place))
		if n.unborn && n.before < 0 && !n.root && n.pid != t.asked.Client {
			orphans++
		}
		if n.gone {
			if mute++; first == "" {
				first = n.name
			}
		}
	}
	if mute > 0 {
		k.Missing = append(k.Missing, record.Missing{What: "unreadable", Count: mute,
			Detail: "processes that had ended before their arguments could be read, so that calls may not be known by their verb, or as such, the first of them " + first})
	}
	if orphans > 0 {
		k.Missing = append(k.Missing, record.Missing{What: "unborn", Count: orphans,
			Detail: "processes whose birth was not told, so they begin with their program"})
	}
	k.Containers = t.containers(kept)
	k.Sandbox = t.sandbox(kept, k.Containers)
	k.First = t.first(kept)
	k.Busy, k.Events = t.busy(place)
	k.Own = t.own(place)
	return k
}

// kept are the nodes that belong and lived in the window, in the order of their
// birth, and how many there are beyond the bound.
func (t *tree) kept(c *claims) (kept []int, dropped int) {
	with := map[int]bool{} // roots that have children of the start
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.root || t.rep(i) != i || !c.belongs[i] || !t.lived(n) {
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
	slices.SortStableFunc(kept, func(a, b int) int {
		x, y := &t.nodes[a], &t.nodes[b]
		if x.born == y.born && x.root != y.root {
			return map[bool]int{true: -1, false: 1}[x.root]
		}
		return cmp.Or(cmp.Compare(x.born, y.born), a-b)
	})
	if len(kept) > Most {
		kept, dropped = kept[:Most], len(kept)-Most
	}
	return kept, dropped
}

// lived tells whether a process was there in the window. A workload may be
// executed a moment after the call that started it has returned.
func (t *tree) lived(n *node) bool {
	end := t.asked.Ended
	late := end != 0 && n.born > end && (!n.workload || n.born-end > Late)
	return !late && (n.ended == 0 || n.ended >= t.asked.Began)
}

func (t *tree) process(i int, place map[int]bool) record.StartProcess {
	n := &t.nodes[i]
	p := record.StartProcess{
		Pid: n.pid, Kind: n.kind, Name: n.name, Program: n.program, Verb: n.verb, Container: t.about(i),
		Born: n.born, Exec: n.exec, Ended: n.ended, CPU: -1, Exit: n.exit,
	}
	if p.Name == "" {
		p.Name = p.Kind
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

// about is the id of the container that a process is there for: its own, or that
// of whoever started it.
func (t *tree) about(i int) string {
	if id := t.nodes[i].id; id != "" {
		return id
	}
	return t.above[i]
}

func (t *tree) containers(kept []int) []string {
	var ids []string
	for _, i := range kept {
		if id := t.nodes[i].id; id != "" && !slices.Contains(ids, id) && len(ids) < 256 {
			ids = append(ids, id)
		}
	}
	return ids
}

// sandbox is the pod: of several ids the one that the network was made for, else
// the first.
func (t *tree) sandbox(kept []int, ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	for _, i := range kept {
		if n := &t.nodes[i]; n.kind == record.KindCNI && n.id != "" {
			return n.id
		}
	}
	return ids[0]
}

// first is the exec of the workload: of a pod's containers, not the one that only
// holds the pod.
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
	if first == 0 {
		return pause
	}
	return first
}

// pods are the ids that hold a pod: other containers hang below them, or use the
// network that was made for them.
func (t *tree) pods(kept []int) map[string]bool {
	pods, networks, without := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, i := range kept {
		n := &t.nodes[i]
		if n.id == "" {
			continue
		}
		if above := t.above[i]; above != "" && above != n.id {
			pods[above] = true
		}
		if n.kind == record.KindCNI {
			networks[n.id] = true
		}
		without[n.id] = true
	}
	for id := range networks {
		delete(without, id)
	}
	if len(without) > 0 {
		for id := range networks {
			pods[id] = true
		}
	}
	return pods
}

// busy is the CPU time used by the events of the start, never less than before.
func (t *tree) busy(place map[int]bool) (all []record.BusyAt, events int64) {
	var before, after *tracer.Event
	var own []*tracer.Event
	for j := range t.events {
		e := &t.events[j]
		mine := t.whose[j] >= 0 && place[t.rep(t.whose[j])]
		if mine {
			events++
		}
		switch {
		case e.Busy < 0:
		case mine:
			own = append(own, e)
		case e.Time <= t.asked.Began:
			before = e
		case t.asked.Ended != 0 && e.Time >= t.asked.Ended && after == nil:
			after = e
		}
	}
	for _, e := range []*tracer.Event{before, after} {
		if e != nil {
			own = append(own, e)
		}
	}
	slices.SortStableFunc(own, func(a, b *tracer.Event) int { return cmp.Compare(a.Time, b.Time) })
	var most int64
	for _, e := range own {
		most = max(most, e.Busy)
		all = used(all, e.Time, most)
	}
	return all, events
}

// used adds how much was used by a moment.
func used(all []record.BusyAt, at, cpu int64) []record.BusyAt {
	if n := len(all); n > 0 && all[n-1].At == at {
		all = all[:n-1]
	}
	return append(all, record.BusyAt{At: at, CPU: cpu})
}

// brief shortens an id for people.
func brief(id string) string {
	if len(id) > 12 && hexadecimal(id) {
		return id[:12]
	}
	return id
}
