package proctree

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tare-bench/tare/record"
)

// group is a set of related containers that were created in the window, such as the
// containers of a pod below its shim.
type group struct {
	ids     []string
	at      int64 // first appearance
	network bool  // only its network was created
	mine    bool
}

// groups returns the groups of containers created by descendants of the roots, in
// order of appearance. Without roots it covers all processes except the client.
func (t *tree) groups() []*group {
	of := map[string]*group{} // by id
	var all []*group
	for i := range t.nodes {
		n := &t.nodes[i]
		id := t.made(n)
		if id == "" || t.ofClient[i] || t.under[i] < 0 && len(t.asked.Roots) > 0 {
			continue
		}
		g := of[id]
		if g == nil {
			g = &group{ids: []string{id}, at: n.born, network: true, mine: t.mine[id]}
			of[id], all = g, append(all, g)
		}
		g.at, g.network = min(g.at, n.born), g.network && n.kind == record.KindCNI
		if home := of[t.above[i]]; home != nil && home != g {
			home.ids, home.at = append(home.ids, g.ids...), min(home.at, g.at)
			home.network, home.mine = home.network && g.network, home.mine || g.mine
			for _, id := range g.ids {
				of[id] = home
			}
			g.ids = nil
		}
	}
	all = slices.DeleteFunc(all, func(g *group) bool { return g.ids == nil })
	slices.SortStableFunc(all, func(a, b *group) int { return cmp.Compare(a.at, b.at) })
	return all
}

// guess accepts containers whose ids nothing links to the start. A daemon works only on
// request, so such a container must be created after an engine client began. There must
// be at most as many of these containers as there are clients. Otherwise their owners
// are ambiguous, and none is accepted.
func (t *tree) guess() {
	asks := t.askers()
	if len(asks) == 0 {
		return
	}
	t.since = asks[0].at
	free := 0 // number of clients without a known container
	for _, a := range asks {
		if a.starts {
			free++
		}
	}
	sure := free == len(asks)
	var rest []*group
	for _, g := range t.groups() {
		switch {
		case g.mine && !g.network:
			free--
		case g.mine, g.at < t.since: // began before any request
		default:
			rest = append(rest, g)
		}
	}
	if len(rest) == 0 || free <= 0 && sure {
		return
	}
	for _, those := range [][]*group{rest, t.complete(rest, false), t.complete(rest, true)} {
		if !fits(those, asks, free) {
			continue
		}
		for _, g := range those {
			for _, id := range g.ids {
				t.mine[id] = true
			}
		}
		return
	}
	t.missing = append(t.missing, ambiguous(rest, "started"))
}

// fits reports whether the clients without a known container could have requested all
// groups.
func fits(groups []*group, asks []asker, free int) bool {
	containers, networks := 0, 0
	for _, g := range groups {
		if g.network {
			networks++
			continue
		}
		if containers < len(asks) && g.at < asks[containers].at {
			return false
		}
		containers++
	}
	return len(groups) > 0 && containers <= free && networks <= free
}

// complete returns the groups with an executed workload, if the command succeeded. If
// named is set, a client must have the workload's program in its arguments.
func (t *tree) complete(groups []*group, named bool) (out []*group) {
	if !slices.ContainsFunc(t.nodes, func(n node) bool { return n.pid == t.asked.Client && n.exit != nil && *n.exit == 0 }) {
		return nil
	}
	words := map[string]bool{}
	for i := range t.nodes {
		if t.ofClient[i] && t.isClient(i) {
			for _, word := range t.nodes[i].rest {
				words[path.Base(word)] = true
			}
		}
	}
	for _, g := range groups {
		if slices.ContainsFunc(t.nodes, func(n node) bool {
			return n.workload && !n.session && t.lived(&n) && (!named || words[n.base]) && slices.Contains(g.ids, t.about(n.stands))
		}) {
			out = append(out, g)
		}
	}
	return out
}

func ambiguous(rest []*group, done string) record.Missing {
	shown := make([]string, 0, 5)
	for _, g := range rest[:min(len(rest), 5)] {
		shown = append(shown, brief(g.ids[0]))
	}
	more := ""
	if len(rest) > 5 {
		more = fmt.Sprintf(" and %d more", len(rest)-5)
	}
	return record.Missing{What: "ambiguous", Count: int64(len(rest)),
		Detail: "containers " + done + " meanwhile that may belong to others are left out: " + strings.Join(shown, ", ") + more +
			"; run it on an idle machine, or " + map[string]string{"started": "measure the engine itself, which reports its ids: tare startup docker", "used": "identify the container by its id"}[done]}
}

// asker is a client of an engine.
type asker struct {
	at     int64
	starts bool // starts one container according to its arguments; otherwise the number is unknown
}

// askers returns the engine clients executed by the command that may have started a
// container, in time order. An API call counts as a client.
func (t *tree) askers() (all []asker) {
	if t.asked.Client <= 0 || t.asked.Starts {
		return []asker{{t.asked.Began, true}}
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		if !t.ofClient[i] || !t.isClient(i) {
			continue
		}
		if what := asks(&n.command); what != asksNothing {
			all = append(all, asker{n.exec, what == asksOne})
		}
	}
	slices.SortStableFunc(all, func(a, b asker) int { return cmp.Compare(a.at, b.at) })
	return all
}

// isClient reports whether a process is an engine client.
func (t *tree) isClient(i int) bool {
	is := func(n *node) bool { return slices.Contains(daemonClients, n.program) }
	return t.nodes[i].did && t.rep(i) == i && is(&t.nodes[i]) && !t.hasAbove(i, is) // docker executes its plugins
}

// daemonClients are programs that start containers through a daemon. podman and
// buildah start containers themselves and are not included.
var daemonClients = []string{"docker", "nerdctl", "ctr", "crictl", "isula", "kubectl", "podman-remote", "docker-compose", "finch", "lima"}

// The possible requests of a client.
const (
	asksNothing = iota
	asksOne     // a container or a pod
	asksUnknown
)

var (
	// nouns may precede a verb: docker container run, ctr tasks start.
	nouns = []string{"container", "containers", "c", "task", "tasks", "t", "compose", "pod"}
	// starting are the verbs that start one container each, though not in every engine.
	starting = []string{"run", "start", "restart", "runp", "up"}
	// idle are the verbs that start no container. docker create only prepares one.
	idle = []string{"--version", "--help", "ps", "pull", "push", "images", "image", "rmi", "rm", "stop", "kill", "logs", "inspect", "info", "version", "exec", "tag", "import",
		"load", "save", "cp", "network", "volume", "system", "events", "wait", "top", "stats", "port", "create", "delete", "ls", "list", "attach",
		"login", "logout", "search", "history", "rename", "pause", "unpause", "diff", "commit", "export", "pods", "rmp", "stopp", "get", "describe", "context"}
	// clientValues are global flags with a value in the next argument.
	clientValues = []string{"-H", "--host", "-c", "--context", "--config", "-l", "--log-level", "--tlscacert", "--tlscert", "--tlskey", "-a", "--address",
		"-n", "--namespace", "-r", "--runtime-endpoint", "-i", "--image-endpoint", "-t", "--timeout", "-f", "--file", "-p", "--project-name", "--kubeconfig"}
)

// asksFor returns the verb of a client: the first argument that is not a flag, a
// flag's value or a noun. It returns --version or --help if that comes first, and ""
// without a verb.
func (c *command) asksFor() string {
	for i := 0; i < len(c.rest); i++ {
		switch arg := c.rest[i]; {
		case slices.Contains(clientValues, arg):
			i++
		case arg == "--version", arg == "--help", !strings.HasPrefix(arg, "-") && !slices.Contains(nouns, arg):
			return arg
		}
	}
	return ""
}

// asks returns the request of a client, from its arguments.
func asks(c *command) int {
	switch verb := c.asksFor(); {
	case slices.Contains(starting, verb), c.base == "crictl" && verb == "create", c.base == "kubectl" && (verb == "create" || verb == "apply"),
		verb == "" && c.cut: // the arguments could not be read completely
		return asksOne
	case verb == "", slices.Contains(idle, verb):
		return asksNothing
	}
	return asksUnknown
}

// least is the minimum number of hexadecimal digits that identify a container in any
// argument. fewest is the minimum in the arguments of an engine client that starts no
// container, if exactly one id matches.
const (
	least  = 6
	fewest = 4
)

// named returns the container ids in the arguments of the command's descendants. Ids
// may be abbreviated.
func (t *tree) named() (ids []string) {
	all := map[string]bool{} // ids in the arguments of engine processes
	for i := range t.nodes {
		if id := t.nodes[i].id; id != "" && !t.ofClient[i] {
			all[id] = true
		}
	}
	looked := map[string]bool{}
	for i := range t.nodes {
		n := &t.nodes[i]
		if !t.ofClient[i] || !n.did || n.kind == record.KindWorkload {
			continue
		}
		short := slices.Contains(daemonClients, n.program) && asks(&n.command) == asksNothing
		for _, word := range n.rest {
			if n.program == "ctr" && all[word] { // ctr accepts any word as an id
				ids = append(ids, word)
			}
			brief := len(word) < least
			if n.program == "ctr" || looked[word] || brief && !short || len(word) < fewest || len(word) > 64 || !hexadecimal(word) {
				continue
			}
			looked[word] = true
			if meant := beginningWith(word, all); len(meant) == 1 || !brief {
				ids = append(ids, meant...)
			}
		}
	}
	return ids
}

// beginningWith returns the ids that start with word.
func beginningWith(word string, ids map[string]bool) (meant []string) {
	for id := range ids {
		if strings.HasPrefix(id, word) && hexadecimal(id) {
			meant = append(meant, id)
		}
	}
	return meant
}

func hexadecimal(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
