package machine

import (
	"path"
	"slices"
	"strconv"
	"strings"
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

// CPULimit returns the tightest CPU limit of this process. It reports false if there is
// none or none is readable.
func (r Root) CPULimit() (tightest CPULimit, limited bool) {
	hierarchies, err := r.Cgroups()
	lines, linesErr := r.threadFile("cgroup", mountinfoLimit)
	if err != nil || linesErr != nil {
		return CPULimit{}, false
	}
	for _, h := range hierarchies {
		for _, group := range h.cpuGroups(string(lines)) {
			if l := r.cpuLimit(h, group); l.CPUs > 0 && (!limited || l.CPUs < tightest.CPUs) {
				tightest, limited = l, true
			}
		}
	}
	return tightest, limited
}

// cpuGroups returns the group of a process and its ancestors in a hierarchy with the cpu
// controller, by lines of /proc/PID/cgroup.
func (h Hierarchy) cpuGroups(lines string) (groups []string) {
	group, in := h.cpuGroup(lines)
	for in && h.Has("cpu") {
		groups = append(groups, group)
		if group == "/" || group == path.Clean(h.Root) {
			break
		}
		group = path.Dir(group)
	}
	return groups
}

// cpuGroup finds the group of a process by lines of /proc/PID/cgroup, such as v1's
// "4:cpu,cpuacct:/user" and v2's "0::/user".
func (h Hierarchy) cpuGroup(lines string) (group string, in bool) {
	for line := range strings.Lines(lines) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) < 3 || !path.IsAbs(parts[2]) || strings.Contains(parts[2], "..") { // ".." leads out of the cgroup namespace
			continue
		}
		names := strings.Split(parts[1], ",")
		if h.Version == 2 && parts[0] == "0" || h.Version == 1 && slices.Contains(names, "cpu") {
			group = path.Clean(parts[2])
			return group, group == path.Clean(h.Root) || strings.HasPrefix(group, strings.TrimSuffix(h.Root, "/")+"/")
		}
	}
	return "", false
}

// cpuLimit reads the limit of one group.
func (r Root) cpuLimit(h Hierarchy, group string) CPULimit {
	dir := path.Join(h.Mount, strings.TrimPrefix(group, strings.TrimSuffix(h.Root, "/")))
	file, lift := dir+"/cpu.max", "max"
	fields := strings.Fields(r.word(file)) // "5000 100000"
	if h.Version == 1 {
		file, lift = dir+"/cpu.cfs_quota_us", "-1"
		fields = []string{r.word(file), r.word(dir + "/cpu.cfs_period_us")}
	}
	l := CPULimit{Group: group, Lift: "echo " + lift + " > " + file}
	if len(fields) == 2 {
		quota, err := strconv.ParseInt(fields[0], 10, 64)
		period, periodErr := strconv.ParseInt(fields[1], 10, 64)
		if err == nil && periodErr == nil && quota > 0 && period > 0 { // not "max", nor -1
			l.CPUs = float64(quota) / float64(period)
		}
	}
	text, _ := r.Read(dir+"/cpu.stat", wordLimit)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "nr_periods":
			l.Periods = n
		case "nr_throttled":
			l.Throttled = n
		case "throttled_time":
			l.Held = n
		case "throttled_usec":
			l.Held = n * 1000
		}
	}
	return l
}
