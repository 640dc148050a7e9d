package proctree

import (
	"github.com/tare-bench/tare/record"
)

// claim decides which nodes belong to the start.
func (t *tree) claim() {
	t.belongs, t.mine = make([]bool, len(t.nodes)), map[string]bool{}
	t.ofClient = t.clients()
	for _, id := range t.asked.Containers {
		if id = container(id); id != "" {
			t.mine[id] = true
		}
	}
	for i := range t.nodes {
		if id := t.nodes[i].id; t.ofClient[i] && id != "" {
			t.mine[id] = true
		}
	}
	for _, id := range t.named() {
		t.mine[id] = true
	}
	t.spread()
	t.since = t.asked.Began
	t.guess()
	t.touched()
	t.spread()
	t.decide()
}

// clients returns, for each node, whether it descends from the started command.
func (t *tree) clients() []bool {
	of := make([]bool, len(t.nodes))
	if t.client < 0 {
		return of
	}
	for i := range t.nodes {
		up, was := t.up(i), t.rep(t.nodes[i].before)
		of[i] = i == t.client || of[t.rep(i)] || up >= 0 && of[up] || was >= 0 && of[was]
	}
	return of
}

// made returns the id of the container that a process created in the window, or "".
func (t *tree) made(n *node) string {
	late := t.asked.Ended != 0 && n.born > t.asked.Ended
	if n.root || n.born < t.asked.Began || late {
		return ""
	}
	switch {
	case n.call && (n.verb == "create" || n.verb == "run" || n.verb == "restore"),
		n.kind == record.KindShim, n.kind == record.KindMonitor,
		n.kind == record.KindHelper && n.verb == "start",
		n.kind == record.KindCNI && n.verb == "ADD":
		return n.id
	}
	return ""
}

// spread adds ids related to the start's ids: ids of descendants and of ancestors. A
// pod has two levels, so a few passes are enough.
func (t *tree) spread() {
	for changed, pass := true, 0; changed && pass < 8; pass++ {
		changed = false
		for i := range t.nodes {
			id, above := t.nodes[i].id, t.above[i]
			if id == "" || above == "" || t.mine[id] == t.mine[above] {
				continue
			}
			t.mine[id], t.mine[above] = true, true
			changed = true
		}
	}
}

// The states of a node.
const (
	open    = iota // undecided
	foreign        // it has an id of another start, or descends from one that has
	mine           // it belongs to this start
)

// decide sets for every node whether it belongs to the start.
func (t *tree) decide() {
	state := make([]int, len(t.nodes))
	rival := false // another start created a container below the roots during this start
	taken := false // this start created a container there
	for i := range t.nodes {
		n := &t.nodes[i]
		state[i] = t.known(state, i)
		if t.rep(i) == i && !n.root && n.id != "" && !t.ofClient[i] && t.under[i] >= 0 {
			taken = taken || state[i] == mine
			rival = rival || state[i] == foreign && t.made(n) != ""
		}
	}
	t.upwards(state)
	for i := range t.nodes {
		n := &t.nodes[i]
		if state[i] == open {
			state[i] = t.handed(state, i)
		}
		alone := state[i] == open && t.under[i] >= 0 && !t.beside(t.under[i]) && taken && !rival && n.born >= t.since
		t.belongs[i] = !n.root && (state[i] == mine || alone)
	}
}

// known returns the state of a node from its own id or from its ancestors.
func (t *tree) known(state []int, i int) int {
	n := &t.nodes[i]
	switch {
	case n.root:
		return open
	case t.rep(i) != i:
		return state[t.rep(i)]
	case t.ofClient[i], n.id != "" && t.mine[n.id]:
		return mine
	case n.id != "":
		return foreign
	}
	return t.handed(state, i)
}

// upwards sets the state of undecided nodes from their children. One child of this
// start is enough.
func (t *tree) upwards(state []int) {
	for i := len(t.nodes) - 1; i >= 0; i-- {
		for _, above := range []int{t.up(i), t.rep(t.nodes[i].before)} {
			if above >= 0 && !t.nodes[above].root && t.nodes[above].id == "" && t.above[above] == "" {
				state[above] = max(state[above], state[t.rep(i)])
			}
		}
	}
}

// beside reports whether a root is a shim or a monitor. Such a root serves one
// container, so its children without an id belong to that container.
func (t *tree) beside(root int) bool {
	kind := t.nodes[root].kind
	return kind == record.KindShim || kind == record.KindMonitor
}

// handed returns the state that i inherits from its parent and its previous program.
func (t *tree) handed(state []int, i int) int {
	s := open
	if up := t.up(i); up >= 0 {
		s = state[up]
	}
	if was := t.rep(t.nodes[i].before); was >= 0 {
		s = max(s, state[was])
	}
	return s
}
