package containerd

import (
	"fmt"
	"os"
	"slices"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
)

// KillCommands kills the processes of a container but its first one: commands
// that were run in it, and what those started. It goes by two facts, looked at
// while the process is pinned: a cgroup that bears the container's id, and the
// first process's own PID namespace. Where that is the machine's, as with VMs,
// or the first process is not known, nothing is killed.
func KillCommands(id string, first int) {
	space := namespace(first)
	if id == "" || space == "" || space == namespace(os.Getpid()) {
		return
	}
	for _, pid := range procs.All() {
		if pid == first || !inside(pid, id, space) {
			continue
		}
		_ = cgroup.KillIf(pid, func() bool { return inside(pid, id, space) }) // gone already, or killed in the next turn
	}
}

// inside tells whether a process is in a container and in a PID namespace.
func inside(pid int, id, space string) bool {
	return namespace(pid) == space && Charged(pid, id)
}

// namespace is a process's PID namespace, "" where it is not known.
func namespace(pid int) string {
	if pid <= 1 {
		return ""
	}
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return ""
	}
	return space
}

// Charged tells whether a process is in a cgroup that bears a container's id.
func Charged(pid int, id string) bool {
	groups, err := procs.GroupsOf(pid)
	return err == nil && bears(groups, id)
}

// bears tells whether one of the cgroups is a container's, in the forms of all
// drivers: "ID", "crio-ID", "cri-containerd-ID.scope".
func bears(groups *procs.Groups, id string) bool {
	return slices.ContainsFunc(groups.All, func(where string) bool { return attribution.Names(where, []string{id}) })
}
