package kin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/record"
)

// claims are whose the nodes are.
type claims struct {
	belongs []bool
	mine    map[string]bool // ids of the start
	missing []record.Missing
}

// claim decides which nodes belong to the start.
func (t *tree) claim() *claims {
	c := &claims{belongs: make([]bool, len(t.nodes)), mine: map[string]bool{}}
	client := t.clients()
	for _, id := range t.asked.Containers {
		if id = container(id); id != "" {
			c.mine[id] = true
		}
	}
	for i := range t.nodes {
		if id := t.nodes[i].id; client[i] && id != "" {
			c.mine[id] = true
		}
	}
	if len(c.mine) == 0 && !t.guess(c, func(i int) bool { return t.under[i] >= 0 }) {
		t.guess(c, func(int) bool { return true })
	}
	t.spread(c)
	t.decide(c, client)
	return c
}

// clients are the nodes that descend from the command that was started.
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

// made is the id that a process began a container with, "" if it did not.
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

// guess takes all containers that were made in the window by some nodes, those
// below the roots at best, or of them the ones that the client's arguments name.
// What hangs together, as the containers of a pod below its shim, is one. It
// tells whether there were any.
func (t *tree) guess(c *claims, by func(i int) bool) bool {
	group := map[string]string{}
	find := func(id string) string {
		for group[id] != id {
			id = group[id]
		}
		return id
	}
	var ids []string
	names := map[string]string{}
	for i := range t.nodes {
		n := &t.nodes[i]
		id := t.made(n)
		if id == "" || !by(i) {
			continue
		}
		if _, known := group[id]; !known {
			group[id] = id
			ids = append(ids, id)
		}
		if n.alias != "" {
			names[id] = n.alias
		}
		if above := t.above[i]; above != "" && group[above] != "" {
			group[find(id)] = find(above)
		}
	}
	var groups, named []string
	for _, id := range ids {
		if g := find(id); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
		if t.asksFor(id, names[id]) && !slices.Contains(named, find(id)) {
			named = append(named, find(id))
		}
	}
	if len(named) > 0 {
		groups = named
	}
	for _, id := range ids {
		if slices.Contains(groups, find(id)) {
			c.mine[id] = true
		}
	}
	if len(groups) > 1 {
		c.missing = append(c.missing, record.Missing{What: "ambiguous", Count: int64(len(groups)), Detail: several(groups)})
	}
	return len(ids) > 0
}

// asksFor tells whether the client's arguments name a container, by its id, by at
// least six characters at its beginning, or by its name.
func (t *tree) asksFor(id, name string) bool {
	for _, arg := range t.asks {
		if arg == id || name != "" && arg == name || len(arg) >= 6 && strings.HasPrefix(id, arg) {
			return true
		}
	}
	return false
}

func several(ids []string) string {
	shown := make([]string, 0, 5)
	for _, id := range ids[:min(len(ids), 5)] {
		shown = append(shown, brief(id))
	}
	more := ""
	if len(ids) > 5 {
		more = fmt.Sprintf(" and %d more", len(ids)-5)
	}
	return "containers that were started at the same time: " + strings.Join(shown, ", ") + more
}

// spread adds the ids that hang together with the start's: of what descends from
// one that has such an id, and of who it descends from. A pod has two levels of
// them; more passes than a few are for nobody.
func (t *tree) spread(c *claims) {
	for changed, pass := true, 0; changed && pass < 8; pass++ {
		changed = false
		for i := range t.nodes {
			id, above := t.nodes[i].id, t.above[i]
			if id == "" || above == "" || c.mine[id] == c.mine[above] {
				continue
			}
			c.mine[id], c.mine[above] = true, true
			changed = true
		}
	}
}

// What is known of a node's belonging.
const (
	open    = iota // nothing
	foreign        // it has or descends from an id of another start
	mine           // of this one
)

// decide says of every node whether it belongs.
func (t *tree) decide(c *claims, client []bool) {
	state := make([]int, len(t.nodes))
	rival := false // below the roots another container was made meanwhile
	for i := range t.nodes {
		n := &t.nodes[i]
		switch {
		case n.root:
		case t.rep(i) != i:
			state[i] = state[t.rep(i)]
		case client[i], n.id != "" && c.mine[n.id]:
			state[i] = mine
		case n.id != "":
			state[i] = foreign
			rival = rival || t.under[i] >= 0 && t.made(n) != ""
		default:
			state[i] = t.handed(state, i)
		}
	}
	// Who has nothing of its own to say belongs to whom it works for: its children
	// decide, and one of the start's is enough.
	for i := len(t.nodes) - 1; i >= 0; i-- {
		for _, above := range []int{t.up(i), t.rep(t.nodes[i].before)} {
			if above >= 0 && !t.nodes[above].root && t.nodes[above].id == "" && t.above[above] == "" {
				state[above] = max(state[above], state[t.rep(i)])
			}
		}
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		if state[i] == open {
			state[i] = t.handed(state, i)
		}
		alone := state[i] == open && t.under[i] >= 0 && !rival && n.born >= t.asked.Began
		c.belongs[i] = !n.root && (state[i] == mine || alone)
	}
}

// handed is what i has from who forked it and from what it was before.
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
