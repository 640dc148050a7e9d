package attribution

import (
	"os"
	"path"
	"slices"
	"strings"
)

var pageSize = int64(os.Getpagesize())

// Groups is a /proc/PID/cgroup file: where a process is in every hierarchy.
type Groups struct {
	// Paths are by controller; "" stands for the hierarchy of version 2, and
	// "name=systemd" for one of version 1 that only has a name.
	Paths   map[string]string
	Deleted bool // one of them was removed, the process is its last

	text    string
	broken  int
	all     []string          // distinct paths, the one of memory first, without "/"
	charged map[string]string // Paths of what is accounted
}

// accounts are the controllers that a membership in a record lists. The others
// (freezer, devices, net_cls, names) charge nobody for anything.
var accounts = []string{"memory", "cpuacct", "cpu", "blkio", "cpuset", "hugetlb", "misc", "pids", "rdma", ""}

// parseGroups reads lines of "4:memory:/x", "2:cpu,cpuacct:/x" and "0::/x", see
// cgroups(7). A path may hold colons, and ends in " (deleted)" where its group
// was removed. A line of another form is counted and left out.
func parseGroups(text string) *Groups {
	g := &Groups{Paths: map[string]string{}, charged: map[string]string{}, text: text}
	for line := range strings.Lines(text) {
		id, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, where, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 || !digits(id) || !strings.HasPrefix(where, "/") || len(where) > 4096 || strings.ContainsRune(where, 0) {
			g.broken++
			continue
		}
		if short, deleted := strings.CutSuffix(where, " (deleted)"); deleted {
			where, g.Deleted = short, true
		}
		for _, c := range strings.Split(controllers, ",") {
			if _, twice := g.Paths[c]; twice || len(c) > 64 || len(g.Paths) >= 64 {
				g.broken++
				continue
			}
			g.Paths[c] = where
		}
	}
	add := func(where string) {
		if where != "/" && where != "" && !slices.Contains(g.all, where) {
			g.all = append(g.all, where)
		}
	}
	for _, c := range accounts {
		if where, ok := g.Paths[c]; ok {
			add(where)
			g.charged[c] = where
		}
	}
	var rest []string
	for c := range g.Paths {
		rest = append(rest, c)
	}
	slices.Sort(rest)
	for _, c := range rest {
		add(g.Paths[c])
	}
	return g
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != "" && len(s) < 10
}

// Memory is the path that memory is charged to, "" where there is none.
func (g *Groups) Memory() string { return first(g.Paths, "memory", "") }

// CPU is the path that CPU time is charged to, "" where there is none.
func (g *Groups) CPU() string { return first(g.Paths, "cpuacct", "cpu", "") }

func first(paths map[string]string, controllers ...string) string {
	for _, c := range controllers {
		if where, ok := paths[c]; ok {
			return where
		}
	}
	return ""
}

// billed are the distinct paths that memory and CPU time are charged to. The
// hierarchy of version 2 counts where version 1 has not both controllers.
func billed(paths map[string]string) []string {
	var out []string
	_, memory := paths["memory"]
	_, cpuacct := paths["cpuacct"]
	_, cpu := paths["cpu"]
	for _, c := range []string{"memory", "cpuacct", "cpu", ""} {
		if c == "" && memory && (cpu || cpuacct) {
			continue
		}
		if where, ok := paths[c]; ok && !slices.Contains(out, where) {
			out = append(out, where)
		}
	}
	return out
}

// within tells whether a group is, or is below, another. Nothing is within "/".
func within(where, group string) bool {
	return group != "" && group != "/" && (where == group || strings.HasPrefix(where, group) && where[len(group)] == '/')
}

// upwards calls f for a path and those above it, the root left out, until f
// says false.
func upwards(where string, f func(string) bool) {
	for where != "/" && where != "." && where != "" && f(where) {
		where = path.Dir(where)
	}
}
