package engine

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
	"golang.org/x/sys/unix"
)

// Rlimit is one of setrlimit(2).
type Rlimit struct {
	Name  string // "nproc", without RLIMIT_
	Limit int64  // hard and soft
}

// Lowered are the limits to give containers explicitly: those of the process
// that starts podman's runtimes, where it may not raise them. Podman gives a
// container 1048576 files and as many processes unless containers.conf or its
// caller says otherwise. nil where the process may, or where it is not known.
func Lowered(pid int) []Rlimit {
	status, err := procs.StatusOf(pid)
	if err != nil || status.Effective&(1<<unix.CAP_SYS_RESOURCE) != 0 {
		return nil
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return nil
	}
	return hardLimits(string(limits))
}

// hardLimits reads the third column, see proc_pid_limits(5):
// "Max open files            1024                 524288               files".
func hardLimits(text string) []Rlimit {
	const most = 1048576 // what podman would give
	var out []Rlimit
	for _, l := range []struct{ line, name string }{{"Max processes", "nproc"}, {"Max open files", "nofile"}} {
		for line := range strings.Lines(text) {
			rest, ok := strings.CutPrefix(line, l.line)
			fields := strings.Fields(rest)
			if !ok || len(fields) < 2 {
				continue
			}
			hard, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil || hard > most { // "unlimited" is no number
				hard = most
			}
			out = append(out, Rlimit{l.name, int64(hard)})
		}
	}
	return out
}

// BelowPidMax is what is left of the limits once podman itself has started: its
// command lowers its own limit of processes to the kernel's pid_max.
func BelowPidMax(limits []Rlimit) []Rlimit {
	text, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return limits
	}
	pidMax, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	for i := range limits {
		if l := &limits[i]; l.Name == "nproc" && err == nil {
			l.Limit = min(l.Limit, pidMax)
		}
	}
	return limits
}
