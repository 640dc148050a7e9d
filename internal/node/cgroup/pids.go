package cgroup

import (
	"path"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// PIDsLeft returns how many more processes and threads the pids controller allows in the
// given groups. The groups and their ancestors can have limits. The one that leaves the
// fewest counts: limit is its value, and file is where it is set. ok is false without a
// limit. hs may be a container's view of the hierarchies.
func PIDsLeft(root machine.Root, hs []Hierarchy, in *procs.Groups) (left, limit int64, file string, ok bool) {
	files := [2]string{"pids.max", "pids.current"}
	return leftOf(root, hs, in, "pids", map[int][2]string{1: files, 2: files})
}

// MemoryLeft is like PIDsLeft for the memory controller, in bytes. Page cache does not count
// as used: the kernel drops it before it kills a process.
func MemoryLeft(root machine.Root, hs []Hierarchy, in *procs.Groups) (left, limit int64, file string, ok bool) {
	return leftOf(root, hs, in, "memory", map[int][2]string{1: {"memory.limit_in_bytes", "memory.usage_in_bytes"}, 2: {"memory.max", "memory.current"}})
}

// leftOf reads limit and usage of a group and its ancestors, and returns the limit with the
// smallest rest. files maps the cgroup version to the names of the files of limit and usage.
// In a container the mount is the container's group, which may have a limit. The root of a
// hierarchy has none.
func leftOf(root machine.Root, hs []Hierarchy, in *procs.Groups, controller string, files map[int][2]string) (left, limit int64, file string, ok bool) {
	h, group := find(hs, in, controller)
	names := files[h.Version]
	if _, inside := h.Below(group); group != "" && !inside {
		group = h.Root
	}
	for _, dir := range h.Upwards(group) {
		from := path.Join(dir, names[0])
		most, limited := root.Number(from)
		used, counted := root.Number(path.Join(dir, names[1]))
		if !limited || !counted || most >= 1<<62 { // v1's value for no limit
			continue
		}
		if controller == "memory" {
			stat, _ := root.Keyed(path.Join(dir, "memory.stat"))
			prefix := map[int]string{1: "total_"}[h.Version]
			used = max(used-stat[prefix+"inactive_file"]-stat[prefix+"active_file"], 0)
		}
		if !ok || most-used < left {
			left, limit, file, ok = max(most-used, 0), most, from, true
		}
	}
	return left, limit, file, ok
}

// PIDsRefused returns how often the kernel refused to create a process or thread. own is the
// count of the given group, above that of its parent, such as a pod's group. limit is the
// limit of the group, or else of the parent. Without a limit all results are 0. Before Linux
// 6.11 the kernel counts a refusal in the group that tried. Since then it counts in the
// group with the limit, including the refusals of other children.
func PIDsRefused(root machine.Root, hs []Hierarchy, in *procs.Groups) (own, above, limit int64) {
	h, group := find(hs, in, "pids")
	for up, dir := range h.Upwards(group) {
		events, _ := root.Keyed(path.Join(dir, "pids.events"))
		if up != group {
			above = events["max"]
		} else {
			own = events["max"]
		}
		if most, limited := root.Number(path.Join(dir, "pids.max")); limited {
			return own, above, most
		} else if up != group {
			break
		}
	}
	return 0, 0, 0
}

// find returns the hierarchy of a controller and the group in it, "" if there is none.
func find(hs []Hierarchy, in *procs.Groups, controller string) (h Hierarchy, group string) {
	h, _ = machine.Cgroups(hs).Find(controller)
	if h.Version == 2 {
		controller = ""
	}
	return h, in.Paths[controller]
}
