package engine

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
	"golang.org/x/sys/unix"
)

// Rlimit is a limit of setrlimit(2).
type Rlimit struct {
	Name  string // "nproc": the name without RLIMIT_
	Limit int64  // hard and soft
}

// Lowered returns the limits to set on containers if the process that starts podman's
// runtimes cannot raise its own limits: that process's hard limits. Otherwise podman
// requests 1048576 files and processes, unless containers.conf or its caller says otherwise.
// It returns nil if the process may raise limits, or if that is unknown.
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

// hardLimits parses the third column of limits, see proc_pid_limits(5):
// "Max open files            1024                 524288               files".
func hardLimits(text string) []Rlimit {
	const most = 1048576 // podman's default
	var out []Rlimit
	for _, l := range []struct{ line, name string }{{"Max processes", "nproc"}, {"Max open files", "nofile"}} {
		for line := range strings.Lines(text) {
			rest, ok := strings.CutPrefix(line, l.line)
			fields := strings.Fields(rest)
			if !ok || len(fields) < 2 {
				continue
			}
			hard, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil || hard > most { // "unlimited" is not a number
				hard = most
			}
			out = append(out, Rlimit{l.name, int64(hard)})
		}
	}
	return out
}

// BelowPidMax lowers the limit of processes to the kernel's pid_max, as podman does with its
// own limit when it starts.
func BelowPidMax(limits []Rlimit) []Rlimit {
	text, _ := os.ReadFile("/proc/sys/kernel/pid_max")
	pidMax, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	for i := range limits {
		if l := &limits[i]; l.Name == "nproc" && err == nil {
			l.Limit = min(l.Limit, pidMax)
		}
	}
	return limits
}
