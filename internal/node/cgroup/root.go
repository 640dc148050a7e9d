package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// HandedDown lists the controllers that the root of the v2 hierarchy hands
// down to its children, nil where there is no v2 hierarchy with controllers.
// Runtimes add to it when they make a container's group, and do not take it
// back.
func HandedDown(hs []Hierarchy) []string {
	for _, h := range hs {
		if h.Version == 2 && len(h.Controllers) > 0 {
			b, err := os.ReadFile(filepath.Join(h.Mount, "cgroup.subtree_control"))
			if err != nil {
				return nil
			}
			return strings.Fields(string(b))
		}
	}
	return nil
}

// Added lists what is in after and not in before.
func Added(before, after []string) []string {
	var out []string
	for _, c := range after {
		if !slices.Contains(before, c) {
			out = append(out, c)
		}
	}
	return out
}
