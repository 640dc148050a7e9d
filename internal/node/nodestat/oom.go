package nodestat

import (
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
)

// oomKills is how many processes the kernel has killed for want of memory, a
// cgroup's or the machine's: oom_kill of /proc/vmstat, since Linux 4.13. Nil where
// that does not tell.
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
