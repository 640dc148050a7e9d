package engine

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
)

// markVariable is in the environment of every command that is run in a
// container, so that its processes can be found on the host: engines start such
// commands, and none can be told to end one.
const markVariable = "TARE_EXEC"

// NewMark is a "NAME=value" for the environment of one command in a container,
// which no other has.
func NewMark() string { return markVariable + "=" + rand.Text() }

// endMarked kills all processes on this machine that are in a cgroup named after
// the container of the given id and have the mark in their environment, and says
// how many there were. A process is pinned while it is looked at. What runs under
// a kernel of its own, in gVisor or a virtual machine, is not among them.
func endMarked(id, mark string) int {
	if id == "" {
		return 0
	}
	n := 0
	for _, pid := range procs.All() {
		if marked(pid, id, mark) && cgroup.KillIf(pid, func() bool { return marked(pid, id, mark) }) == nil {
			n++
		}
	}
	return n
}

func marked(pid int, id, mark string) bool {
	return InGroupOf(pid, id) && slices.Contains(procs.EnvironmentOf(pid), mark)
}

// KillCommands kills the processes of a container but its first one: commands
// that were run in it, and what those started. It goes by two facts, looked at
// while the process is pinned: a cgroup that bears the container's id, and the
// first process's own PID namespace. Where that is the machine's, as with VMs,
// or the first process is not known, nothing is killed.
func KillCommands(id string, first int) {
	space := procs.Namespace(first, "pid")
	if id == "" || first <= 1 || space == "" || space == procs.Namespace(0, "pid") {
		return
	}
	inside := func(pid int) bool { return procs.Namespace(pid, "pid") == space && InGroupOf(pid, id) }
	for _, pid := range procs.All() {
		if pid != first && inside(pid) {
			_ = cgroup.KillIf(pid, func() bool { return inside(pid) }) // gone already, or killed in the next turn
		}
	}
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
