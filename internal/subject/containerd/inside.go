package containerd

import (
	"fmt"
	"os"
	"path"
	"strings"

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
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && bears(string(b), id)
}

// bears tells whether one of the paths in a /proc/PID/cgroup ("5:memory:/path")
// has an element that is a container's, in the forms of all drivers: "ID",
// "crio-ID", "cri-containerd-ID.scope".
func bears(groups, id string) bool {
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for at := parts[2]; len(at) > 1; at = path.Dir(at) {
			if name := strings.TrimSuffix(path.Base(at), ".scope"); name == id || strings.HasSuffix(name, "-"+id) {
				return true
			}
		}
	}
	return false
}
