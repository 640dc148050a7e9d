package cgroup

import (
	"path"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// PIDsLeft is how many more processes and threads may be started from the given
// groups by the pids controller, of how many, and the file that says so: of all limits at
// and above them the one that leaves least. ok is false where there is no limit. What hs
// shows may be a container's own part of a hierarchy.
func PIDsLeft(root machine.Root, hs []Hierarchy, in *procs.Groups) (left, limit int64, file string, ok bool) {
	return leftOf(hs, in, "pids", func(dir string, _ int) (most, used int64, file string, ok bool) {
		file = path.Join(dir, "pids.max")
		most, limited := number(root, file)
		used, counted := number(root, path.Join(dir, "pids.current"))
		return most, used, file, limited && counted
	})
}

// MemoryLeft is the same in bytes by the memory controller. Page cache does not count: the
// kernel drops it before it ends a process.
func MemoryLeft(root machine.Root, hs []Hierarchy, in *procs.Groups) (left, limit int64, file string, ok bool) {
	return leftOf(hs, in, "memory", func(dir string, version int) (most, used int64, file string, ok bool) {
		limitName, usedName, prefix := "memory.max", "memory.current", ""
		if version == 1 {
			limitName, usedName, prefix = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"
		}
		file = path.Join(dir, limitName)
		most, limited := number(root, file)
		used, counted := number(root, path.Join(dir, usedName))
		if !limited || !counted || most >= 1<<62 { // which is none
			return 0, 0, "", false
		}
		text, _ := root.Read(path.Join(dir, "memory.stat"), 64<<10)
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name == prefix+"inactive_file" || name == prefix+"active_file" {
				n, _ := machine.Number([]byte(value))
				used -= n
			}
		}
		return most, max(used, 0), file, true
	})
}

// leftOf looks at a group and at all above it. What a container has at the mount is its
// own group, with its limit. A hierarchy's root has no such file.
func leftOf(hs []Hierarchy, in *procs.Groups, controller string, look func(dir string, version int) (most, used int64, file string, ok bool)) (left, limit int64, file string, ok bool) {
	h, group, found := within(hs, in, controller)
	if !found {
		return 0, 0, "", false
	}
	below := ""
	for dir := path.Clean("/" + group); dir != below; dir = path.Dir(dir) {
		below = dir
		most, used, from, limited := look(path.Join(h.Mount, dir), h.Version)
		if limited && (!ok || most-used < left) {
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
	h, group, found := within(hs, in, "pids")
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

// within is where a controller has the given groups.
func within(hs []Hierarchy, in *procs.Groups, controller string) (h Hierarchy, group string, found bool) {
	h, found = machine.Cgroups(hs).Find(controller)
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
