package engine

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
)

// KillCommands kills the processes of a container but its first one: commands
// that were run in it, and what those started. It returns how many. It goes by two facts,
// looked at while the process is pinned: a cgroup that bears the container's id, and the
// first process's own PID namespace. Where that is the machine's, as with VMs,
// or the first process is not known, nothing is killed.
func KillCommands(id string, first int) (killed int) {
	space := procs.Namespace(first, "pid")
	if id == "" || first <= 1 || space == "" || space == procs.Namespace(0, "pid") {
		return 0
	}
	inside := func(pid int) bool { return procs.Namespace(pid, "pid") == space && InGroupOf(pid, id) }
	for _, pid := range procs.All() {
		if pid != first && inside(pid) && cgroup.KillIf(pid, func() bool { return inside(pid) }) == nil { // else it has gone, or is killed in the next turn
			killed++
		}
	}
	return killed
}

// InGroupOf tells whether a process is in a cgroup that bears a container's id.
func InGroupOf(pid int, id string) bool {
	groups, err := procs.GroupsOf(pid)
	return err == nil && bears(groups, id)
}

// bears tells whether one of the cgroups is a container's, in the forms of all
// drivers: "ID", "crio-ID", "cri-containerd-ID.scope".
func bears(groups *procs.Groups, id string) bool {
	return slices.ContainsFunc(groups.All, func(where string) bool { return attribution.Names(where, []string{id}) })
}

// Charged is path if the process's memory is charged to that cgroup or one below
// it, as the kernel says; else "". Where memory has no hierarchy of its own the
// cgroup2 one counts.
func Charged(pid int, path string) string {
	if pid <= 0 || !strings.HasPrefix(path, "/") || path == "/" {
		return ""
	}
	groups, err := procs.GroupsOf(pid)
	if err != nil {
		return ""
	}
	return charged(groups, path)
}

func charged(groups *procs.Groups, path string) string {
	if procs.Within(groups.Memory(), strings.TrimSuffix(path, "/")) {
		return path
	}
	return ""
}
