package nodestat

import (
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
)

// oomKills returns how many processes the kernel has killed for lack of memory, of a cgroup
// or the machine: oom_kill of /proc/vmstat, since Linux 4.13. It returns nil if unknown.
func oomKills(root machine.Root) *int64 {
	text, err := root.Read("/proc/vmstat", 64<<10)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); name == "oom_kill" && err == nil && n >= 0 {
			return &n
		}
	}
	return nil
}
