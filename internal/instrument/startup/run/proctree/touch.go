package proctree

import "slices"

// touching maps the verb of a client to the runtime verbs that it causes for an
// existing container.
var touching = map[string][]string{
	"exec": {"exec"}, "stop": {"kill", "delete"}, "kill": {"kill", "delete"}, "rm": {"kill", "delete"},
	"pause": {"pause"}, "unpause": {"resume"}, "top": {"ps"}, "update": {"update"},
}

// maxTouching is the maximum number of clients considered. Later clients are ignored.
const maxTouching = 64

// touched accepts containers that a client refers to by a name unknown to the runtime,
// as in docker exec web. The matching runtime calls must follow the exec of the client,
// and all must be for the same container.
func (t *tree) touched() {
	for i, looked := 0, 0; i < len(t.nodes) && looked < maxTouching; i++ {
		n := &t.nodes[i]
		if !t.ofClient[i] || !t.isClient(i) {
			continue
		}
		verbs := touching[n.asksFor()]
		if verbs == nil {
			continue
		}
		looked++
		others, known := t.usedWith(n, verbs)
		switch {
		case known, len(others) == 0:
		case len(others) == 1:
			t.mine[others[0].ids[0]] = true
		default:
			t.missing = append(t.missing, ambiguous(others, "used"))
			return
		}
	}
}

// usedWith returns the containers for which a runtime was called with one of the verbs
// while the client by ran. known reports whether one of them already belongs to the
// start, because the client named it by id.
func (t *tree) usedWith(by *node, verbs []string) (others []*group, known bool) {
	seen := map[string]bool{}
	for i := range t.nodes {
		n := &t.nodes[i]
		late := by.ended != 0 && n.born > by.ended
		if t.ofClient[i] || !n.call || n.id == "" || n.born < by.exec || late || !slices.Contains(verbs, n.verb) {
			continue
		}
		known = known || t.mine[n.id]
		if !seen[n.id] {
			seen[n.id], others = true, append(others, &group{ids: []string{n.id}})
		}
	}
	return others, known
}
