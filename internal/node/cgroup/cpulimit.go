package cgroup

import (
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// CPULimit is the CPU limit of a cgroup and its throttling.
type CPULimit struct {
	CPUs  float64 // 0: no limit
	Group string  // the cgroup, as in /proc/PID/cgroup
	Lift  string  // the command that removes the limit

	// Counters of cpu.stat since the group was made.
	Periods, Throttled int64
	Held               int64 // throttled time, ns
}

// Tightest returns the tightest CPU limit of this process. It reports false if there is
// none or none is readable.
func Tightest(root machine.Root) (tightest CPULimit, limited bool) {
	hs, err := root.Cgroups()
	lines, linesErr := root.ThreadFile("cgroup", groupsLimit)
	if err != nil || linesErr != nil {
		return CPULimit{}, false
	}
	h, group := find(hs, procs.ParseGroups(string(lines)), "cpu")
	for up, dir := range h.Upwards(group) {
		if l := cpuLimit(root, h.Version, up, dir); l.CPUs > 0 && (!limited || l.CPUs < tightest.CPUs) {
			tightest, limited = l, true
		}
	}
	return tightest, limited
}

const groupsLimit = 64 << 10 // bytes of /proc/PID/cgroup

// cpuLimit reads the limit of one group in its folder.
func cpuLimit(root machine.Root, version int, group, dir string) CPULimit {
	file, lift := dir+"/cpu.max", "max"
	fields := strings.Fields(root.Word(file)) // "5000 100000"
	if version == 1 {
		file, lift = dir+"/cpu.cfs_quota_us", "-1"
		fields = []string{root.Word(file), root.Word(dir + "/cpu.cfs_period_us")}
	}
	l := CPULimit{Group: group, Lift: "echo " + lift + " > " + file}
	if len(fields) == 2 {
		quota, err := strconv.ParseInt(fields[0], 10, 64)
		period, periodErr := strconv.ParseInt(fields[1], 10, 64)
		if err == nil && periodErr == nil && quota > 0 && period > 0 { // not "max", nor -1
			l.CPUs = float64(quota) / float64(period)
		}
	}
	stat, _ := root.Keyed(dir + "/cpu.stat")
	l.Periods, l.Throttled, l.Held = stat["nr_periods"], stat["nr_throttled"], stat["throttled_time"]+1000*stat["throttled_usec"]
	return l
}
