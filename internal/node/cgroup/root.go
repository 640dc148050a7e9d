package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// HandedDown lists the controllers that the root of the v2 hierarchy enables for its
// children, nil without a v2 hierarchy with controllers. Runtimes enable more when they
// make a container's group, and do not disable them again.
func HandedDown(hs []Hierarchy) []string {
	i := slices.IndexFunc(hs, func(h Hierarchy) bool { return h.Version == 2 && len(h.Controllers) > 0 })
	if i < 0 {
		return nil
	}
	b, _ := os.ReadFile(filepath.Join(hs[i].Mount, "cgroup.subtree_control"))
	return strings.Fields(string(b))
}

// Added returns the elements of after that before lacks.
func Added(before, after []string) []string {
	return slices.DeleteFunc(slices.Clone(after), func(c string) bool { return slices.Contains(before, c) })
}
