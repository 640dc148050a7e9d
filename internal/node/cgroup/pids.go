package cgroup

import (
	"path"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// PIDsLeft is how many more processes and threads may be started from the given
// groups by the pids controller, of how many, and the file that says so: of all limits at
// and above them the one that leaves least. ok is false where there is no limit.
func PIDsLeft(root machine.Root, hs []Hierarchy, in *procs.Groups) (left, limit int64, file string, ok bool) {
	h, group, found := pids(hs, in)
	if !found {
		return 0, 0, "", false
	}
	// What a container has at the mount is its own group, with its limit. A hierarchy's
	// root has no such file.
	below := ""
	for dir := path.Clean("/" + group); dir != below; dir = path.Dir(dir) {
		below = dir
		from := path.Join(h.Mount, dir, "pids.max")
		most, limited := number(root, from)
		used, counted := number(root, path.Join(h.Mount, dir, "pids.current"))
		if limited && counted && (!ok || most-used < left) {
			left, limit, file, ok = max(most-used, 0), most, from, true
		}
	}
	return left, limit, file, ok
}

// PIDsRefused is how often another process or thread was refused in the given groups and in
// the one above them, such as a pod's, and for which of the two's limit. The kernel
// counts in the group that was refused, or, from 6.11 on, in the one whose limit it was,
// also what others in that were refused.
func PIDsRefused(root machine.Root, hs []Hierarchy, in *procs.Groups) (own, above, limit int64) {
	h, group, found := pids(hs, in)
	if !found {
		return 0, 0, 0
	}
	group = path.Clean(group)
	own = refusedIn(root, path.Join(h.Mount, group))
	if most, limited := number(root, path.Join(h.Mount, group, "pids.max")); limited {
		return own, 0, most
	}
	dir := path.Join(h.Mount, path.Dir(group))
	if most, limited := number(root, path.Join(dir, "pids.max")); limited {
		return own, refusedIn(root, dir), most
	}
	return 0, 0, 0
}

func refusedIn(root machine.Root, dir string) int64 {
	text, err := root.FirstLine(path.Join(dir, "pids.events"), 64)
	count, is := strings.CutPrefix(strings.TrimSpace(text), "max ")
	if !is || err != nil {
		return 0
	}
	n, _ := machine.Number([]byte(count))
	return n
}

// pids is where the pids controller has the given groups.
func pids(hs []Hierarchy, in *procs.Groups) (h Hierarchy, group string, found bool) {
	h, found = machine.Cgroups(hs).Find("pids")
	controller := "pids"
	if h.Version == 2 {
		controller = ""
	}
	group, known := in.Paths[controller]
	return h, group, found && known
}

// number is that of a file which holds nothing else; "max" is none.
func number(root machine.Root, file string) (int64, bool) {
	text, err := root.FirstLine(file, 64)
	if err != nil {
		return 0, false
	}
	return machine.Number([]byte(strings.TrimSpace(text)))
}
