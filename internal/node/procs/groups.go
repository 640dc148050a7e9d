package procs

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Groups is a parsed /proc/PID/cgroup: the cgroup of a process in every hierarchy.
type Groups struct {
	// Paths has a path per controller. The key of cgroup v2 is ""; that of a named
	// hierarchy of v1 is "name=systemd".
	Paths   map[string]string
	Deleted bool              // a group was removed while the process was in it
	Broken  int               // malformed lines
	All     []string          // distinct paths except "/", the one of memory first
	Charged map[string]string // Paths of the controllers that account for a resource
}

// accounts are the controllers that a membership in a record lists. The others
// (freezer, devices, net_cls, named hierarchies) account for no resource.
var accounts = []string{"memory", "cpuacct", "cpu", "blkio", "cpuset", "hugetlb", "misc", "pids", "rdma", ""}

// ParseGroups parses lines such as "4:memory:/x", "2:cpu,cpuacct:/x" and "0::/x", see
// cgroups(7). A path may contain colons. It ends in " (deleted)" if its group was
// removed. Malformed lines are counted and skipped.
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

// Memory returns the path that memory is charged to, or "".
func (g *Groups) Memory() string { return cmp.Or(g.Paths["memory"], g.Paths[""]) }

// CPU returns the path that CPU time is charged to, or "".
func (g *Groups) CPU() string { return cmp.Or(g.Paths["cpuacct"], g.Paths["cpu"], g.Paths[""]) }

// Billed returns the distinct paths that memory and CPU time are charged to. The path of
// cgroup v2 counts unless v1 has both controllers.
func Billed(paths map[string]string) []string {
	var out []string
	memory, cpuacct, cpu, two := paths["memory"], paths["cpuacct"], paths["cpu"], paths[""]
	if memory != "" && cpuacct+cpu != "" {
		two = ""
	}
	for _, where := range []string{memory, cpuacct, cpu, two} {
		if where != "" && !slices.Contains(out, where) {
			out = append(out, where)
		}
	}
	return out
}

// InSubtree reports whether a cgroup is group or below it. For the root it reports false.
func InSubtree(where, group string) bool {
	return group != "" && group != "/" && (where == group || strings.HasPrefix(where, group) && where[len(group)] == '/')
}

// InSubtree reports whether one of the paths is group or below it.
func (g *Groups) InSubtree(group string) bool {
	return slices.ContainsFunc(g.All, func(where string) bool { return InSubtree(where, group) })
}
