package engine

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
)

// KillCommands kills all processes of a container except its first one, and returns how many
// it killed. A process is killed if its cgroup has the container's id and its PID namespace
// is that of the first process; both are checked while the process is pinned. It kills none
// if that namespace is the machine's, as with VMs, or the first process is unknown.
func KillCommands(id string, first int) (killed int) {
	space := procs.Namespace(first, "pid")
	if id == "" || first <= 1 || space == "" || space == procs.Namespace(0, "pid") {
		return 0
	}
	inside := func(pid int) bool { return procs.Namespace(pid, "pid") == space && InGroupOf(pid, id) }
	for _, pid := range procs.All() {
		if pid != first && inside(pid) && cgroup.KillIf(pid, func() bool { return inside(pid) }) == nil { // if it fails, the process has ended, or the next call kills it
			killed++
		}
	}
	return killed
}

// InGroupOf reports whether a process is in a cgroup with a container's id in its name.
func InGroupOf(pid int, id string) bool {
	groups, err := procs.GroupsOf(pid)
	return err == nil && bears(groups, id)
}

// bears reports whether a cgroup's name has a container's id, in any driver's form: "ID",
// "crio-ID", "cri-containerd-ID.scope".
func bears(groups *procs.Groups, id string) bool {
	return slices.ContainsFunc(groups.All, func(where string) bool { return attribution.Names(where, []string{id}) })
}

// Charged returns path if the kernel charges the process's memory to that cgroup or one
// below it, else "". Without a memory hierarchy the cgroup2 one counts.
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
	if procs.InSubtree(groups.Memory(), strings.TrimSuffix(path, "/")) {
		return path
	}
	return ""
}
