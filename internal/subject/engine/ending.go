package engine

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

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

// EndMarked kills all processes on this machine that are in a cgroup named after
// the container of the given id and have the mark in their environment, and says
// how many there were. A process is pinned while it is looked at. What runs under
// a kernel of its own, in gVisor or a virtual machine, is not among them.
func EndMarked(id, mark string) int {
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
	in, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil || !strings.Contains(string(in), id) {
		return false
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	defer f.Close()
	environ, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	return slices.Contains(strings.Split(string(environ), "\x00"), mark)
}

// Charged is path if the process's memory is charged to that cgroup or one below
// it, as the kernel says; else "". Where memory has no hierarchy of its own the
// cgroup2 one counts.
func Charged(pid int, path string) string {
	if pid <= 0 || !strings.HasPrefix(path, "/") || path == "/" {
		return ""
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return ""
	}
	return charged(string(b), path)
}

// charged is Charged for the text of /proc/PID/cgroup, see cgroups(7).
func charged(text, path string) string {
	if procs.Within(procs.ParseGroups(text).Memory(), strings.TrimSuffix(path, "/")) {
		return path
	}
	return ""
}
