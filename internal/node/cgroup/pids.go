package cgroup

import (
	"path"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// PIDsLeft is how many more processes and threads may be started from the given
// groups by the pids controller, and the file that says so: of all limits at and
// above them the one that leaves least. ok is false where there is no limit.
func PIDsLeft(root machine.Root, hs []Hierarchy, in *procs.Groups) (left int64, file string, ok bool) {
	h, found := machine.Cgroups(hs).Find("pids")
	controller := "pids"
	if h.Version == 2 {
		controller = ""
	}
	group, known := in.Paths[controller]
	if !found || !known {
		return 0, "", false
	}
	// The root of a hierarchy has no limit.
	for dir := path.Clean(group); dir != "/" && dir != "."; dir = path.Dir(dir) {
		limit := path.Join(h.Mount, dir, "pids.max")
		most, limited := number(root, limit)
		used, counted := number(root, path.Join(h.Mount, dir, "pids.current"))
		if limited && counted && (!ok || most-used < left) {
			left, file, ok = max(most-used, 0), limit, true
		}
	}
	return left, file, ok
}

// number is that of a file which holds nothing else; "max" is none.
func number(root machine.Root, file string) (int64, bool) {
	text, err := root.FirstLine(file, 64)
	if err != nil {
		return 0, false
	}
	return machine.Number([]byte(strings.TrimSpace(text)))
}
