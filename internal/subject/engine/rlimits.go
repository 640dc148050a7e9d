package engine

import (
	"fmt"
	"os"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
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

// limited matches lines of limits, see proc_pid_limits(5):
// "Max open files            1024                 524288               files".
var limited = regexp.MustCompile(`(?m)^Max (processes|open files) +\S+ +(\S+)`)

// hardLimits parses the third column of limits.
func hardLimits(text string) []Rlimit {
	const most = 1048576 // podman's default
	names := map[string]string{"processes": "nproc", "open files": "nofile"}
	var out []Rlimit
	for _, m := range limited.FindAllStringSubmatch(text, -1) {
		hard, err := strconv.ParseUint(m[2], 10, 64)
		if err != nil || hard > most { // "unlimited" is not a number
			hard = most
		}
		out = append(out, Rlimit{names[m[1]], int64(hard)})
	}
	return out
}

// BelowPidMax lowers the limit of processes to the kernel's pid_max, as podman does with its
// own limit when it starts.
func BelowPidMax(limits []Rlimit) []Rlimit {
	pidMax, known := machine.Root("").Number("/proc/sys/kernel/pid_max")
	for i := range limits {
		if l := &limits[i]; l.Name == "nproc" && known {
			l.Limit = min(l.Limit, pidMax)
		}
	}
	return limits
}
