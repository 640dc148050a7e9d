package proctree

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/record"
)

// node is a process between two consecutive events of its life: its birth, its execs
// and its end. classify merges nodes that count as one, such as a fork and its
// immediate exec. The earlier node then represents both.
type node struct {
	pid    int
	parent int // index of the node that forked it; -1: unknown
	before int // index of the node before its last exec; -1: none
	stands int // index of the node that represents this one, usually itself
	slow   int // index of the child that took longest from fork to exec; -1: none
	root   bool
	unborn bool // its fork had no event
	inits  bool // a child executed the runtime itself as init
	did    bool // it executed the program in command
	command

	born, exec, ended int64
	since, used       int64 // CPU time of the process at its start and end; -1: unknown
	exit              *int
	comm              string

	kind, name, program, verb, id string
	call                          bool // a command of an OCI runtime, possibly nested
	workload                      bool // exec of a container's program
	session                       bool // program executed in a running container, as by docker exec
}

// tree is the history of processes, parents before children.
type tree struct {
	asked    Asked
	nodes    []node
	events   []tracer.Event // in time order
	whose    []int          // node of each event; -1: none
	alive    map[int]int    // pid → its node
	client   int            // node of the started command, or -1
	ofClient []bool         // whether each node descends from that command
	since    int64          // earliest time of a request to a daemon
	above    []string       // nearest container id above each node
	under    []int          // root above each node; -1: none

	belongs []bool          // whether each node belongs to the start
	mine    map[string]bool // ids of the start
	missing []record.Missing
}

// grow builds the tree from events.
func grow(events []tracer.Event, a Asked) *tree {
	t := &tree{asked: a, alive: map[int]int{}, client: -1}
	t.events = slices.Clone(events)
	slices.SortStableFunc(t.events, func(x, y tracer.Event) int {
		return cmp.Or(cmp.Compare(x.Time, y.Time), cmp.Compare(x.Kind, y.Kind))
	})
	for _, r := range a.Roots {
		if _, twice := t.alive[r.Pid]; r.Pid <= 0 || twice {
			continue
		}
		i := t.add(node{pid: r.Pid, parent: -1, born: a.Began, since: -1, root: true, unborn: true})
		n := &t.nodes[i]
		n.kind, n.name = cmp.Or(r.Kind, record.KindOther), clean(r.Name)
		n.program = n.name
	}
	t.whose = make([]int, len(t.events))
	for j := range t.events {
		t.whose[j] = t.happen(&t.events[j])
	}
	if t.client < 0 && a.Client > 0 {
		// Without events for the client there are none for its children either.
		t.client = t.add(node{pid: a.Client, parent: -1, born: a.Began, since: -1, unborn: true})
	}
	return t
}

func (t *tree) add(n node) int {
	i := len(t.nodes)
	n.before, n.stands, n.slow, n.used, n.born = -1, i, -1, -1, max(n.born, 0)
	t.nodes = append(t.nodes, n)
	t.alive[n.pid] = i
	if t.client < 0 && n.pid == t.asked.Client && n.pid > 0 && !n.root {
		t.client = i
	}
	return i
}

// happen processes an event and returns its node.
func (t *tree) happen(e *tracer.Event) int {
	if e.Pid <= 0 || e.Time < 0 {
		return -1
	}
	at, there := t.alive[e.Pid]
	switch e.Kind {
	case tracer.Fork:
		if there { // the exit event is missing: the pid was reused
			t.nodes[at].ended = max(e.Time, t.nodes[at].born)
			delete(t.alive, e.Pid)
		}
		return t.add(node{pid: e.Pid, parent: t.parent(e), born: e.Time, since: 0, comm: e.Comm})
	case tracer.Exec:
		if there && t.nodes[at].root {
			return at
		}
		if !there {
			at = t.add(node{pid: e.Pid, parent: t.parent(e), born: e.Time, since: e.CPU, unborn: true})
			t.execute(at, e)
			return at
		}
		b := &t.nodes[at]
		b.ended, b.used = max(e.Time, b.born), e.CPU
		i := t.add(node{pid: e.Pid, parent: b.parent, born: e.Time, since: e.CPU, unborn: b.unborn})
		t.nodes[i].before = at
		t.execute(i, e)
		t.took(i)
		return i
	case tracer.Exit:
		if !there {
			return -1
		}
		n := &t.nodes[at]
		n.ended, n.used = max(e.Time, n.born), e.CPU
		if e.Comm != "" {
			n.comm = e.Comm
		}
		if e.Status >= 0 {
			status := e.Status
			n.exit = &status
		}
		delete(t.alive, e.Pid)
		return at
	}
	return -1
}

// parent returns the node of an event's parent, or -1. If the client is known only
// from its children, it adds the client's node.
func (t *tree) parent(e *tracer.Event) int {
	if i, ok := t.alive[e.Parent]; ok && e.Parent != e.Pid {
		return i
	}
	if e.Parent == t.asked.Client && e.Parent > 0 && e.Parent != e.Pid && t.client < 0 && e.Time >= t.asked.Began {
		return t.add(node{pid: e.Parent, parent: -1, born: t.asked.Began, since: -1, unborn: true})
	}
	return -1
}

func (t *tree) execute(i int, e *tracer.Event) {
	n := &t.nodes[i]
	n.did, n.exec, n.comm = true, n.born, e.Comm
	n.command = read(e)
}

// took records i in its parent if no other child took longer from fork to exec.
func (t *tree) took(i int) {
	n := &t.nodes[i]
	if n.parent < 0 || t.nodes[n.before].did || helper(n.base) {
		return
	}
	p := &t.nodes[n.parent]
	if n.initial() {
		p.inits = true
		return
	}
	long := func(j int) int64 { return t.nodes[j].exec - t.nodes[t.nodes[j].before].born }
	if p.slow < 0 || long(i) > long(p.slow) {
		p.slow = i
	}
}

// rep returns the node that represents i.
func (t *tree) rep(i int) int {
	for i >= 0 && t.nodes[i].stands != i {
		i = t.nodes[i].stands
	}
	return i
}

// up returns the node that forked i, or -1.
func (t *tree) up(i int) int { return t.rep(t.nodes[t.rep(i)].parent) }

// near is the maximum number of ancestors to search. Between a runtime and its init
// there are only a wrapper and a few stages.
const near = 64

// executor returns the node that executed i. It is the previous program of the
// process, or the nearest ancestor that executed a program.
func (t *tree) executor(i int) int {
	if was := t.rep(t.nodes[i].before); was >= 0 && t.nodes[was].did {
		return was
	}
	for up := range t.climb(i, t.up) {
		if t.nodes[up].did || t.nodes[up].root {
			return up
		}
	}
	return -1
}

// climb iterates over at most near ancestors of i. The function above returns the next
// ancestor; it is t.up or t.executor.
func (t *tree) climb(i int, above func(int) int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for range near {
			if i = above(i); i < 0 || !yield(i) {
				return
			}
		}
	}
}

// hasAbove reports whether one of the nearest executors of i satisfies a condition.
func (t *tree) hasAbove(i int, is func(*node) bool) bool {
	for up := range t.climb(i, t.executor) {
		if is(&t.nodes[up]) {
			return true
		}
	}
	return false
}

// inherit computes the values that nodes inherit from their ancestors, in one pass.
// This avoids repeated walks over long chains of forks.
func (t *tree) inherit() {
	t.above, t.under = make([]string, len(t.nodes)), make([]int, len(t.nodes))
	for i := range t.nodes {
		t.under[i] = -1
		up := t.up(i)
		if up < 0 {
			continue
		}
		t.above[i] = t.about(up)
		if t.under[i] = t.under[up]; t.nodes[up].root {
			t.under[i] = up
		}
	}
}
