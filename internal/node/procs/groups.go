package procs

import (
	"maps"
	"slices"
	"strings"
)

// Groups is a /proc/PID/cgroup file: where a process is in every hierarchy.
type Groups struct {
	// Paths are by controller; "" stands for the hierarchy of version 2, and
	// "name=systemd" for one of version 1 that only has a name.
	Paths   map[string]string
	Deleted bool              // one of them was removed, the process is its last
	Broken  int               // lines of another form
	All     []string          // distinct paths, the one of memory first, without "/"
	Charged map[string]string // Paths of what is accounted
}

// accounts are the controllers that a membership in a record lists. The others
// (freezer, devices, net_cls, names) charge nobody for anything.
var accounts = []string{"memory", "cpuacct", "cpu", "blkio", "cpuset", "hugetlb", "misc", "pids", "rdma", ""}

// ParseGroups reads lines of "4:memory:/x", "2:cpu,cpuacct:/x" and "0::/x", see
// cgroups(7). A path may hold colons, and ends in " (deleted)" where its group
// was removed. A line of another form is counted and left out.
func ParseGroups(text string) *Groups {
	g := &Groups{Paths: map[string]string{}, Charged: map[string]string{}}
	for line := range strings.Lines(text) {
		id, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, where, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 || !digits(id) || !strings.HasPrefix(where, "/") || len(where) > 4096 || strings.ContainsRune(where, 0) {
			g.Broken++
			continue
		}
		if short, deleted := strings.CutSuffix(where, " (deleted)"); deleted {
			where, g.Deleted = short, true
		}
		for c := range strings.SplitSeq(controllers, ",") {
			if _, twice := g.Paths[c]; twice || len(c) > 64 || len(g.Paths) >= 64 {
				g.Broken++
				continue
			}
			g.Paths[c] = where
		}
	}
	for _, c := range accounts {
		if where, ok := g.Paths[c]; ok {
			g.Charged[c] = where
		}
	}
	for _, c := range append(slices.Clone(accounts), slices.Sorted(maps.Keys(g.Paths))...) {
		if where := g.Paths[c]; where != "/" && where != "" && !slices.Contains(g.All, where) {
			g.All = append(g.All, where)
		}
	}
	return g
}

func digits(s string) bool { return s != "" && len(s) < 10 && strings.Trim(s, "0123456789") == "" }

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

// Billed are the distinct paths that memory and CPU time are charged to. The
// hierarchy of version 2 counts where version 1 has not both controllers.
func Billed(paths map[string]string) []string {
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

// Within tells whether a cgroup is, or is below, another. Nothing is within "/".
func Within(where, group string) bool {
	return group != "" && group != "/" && (where == group || strings.HasPrefix(where, group) && where[len(group)] == '/')
}
