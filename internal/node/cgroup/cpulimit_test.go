package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// base is the mountinfo of a machine without cgroup hierarchies.
const base = `10 1 8:1 / / rw - ext4 /dev/sda1 rw
11 10 0:20 / /sys rw - sysfs sysfs rw
12 11 0:21 / /sys/fs/cgroup rw - tmpfs tmpfs rw
`

func TestCPULimit(t *testing.T) {
	t.Parallel()
	const v1 = base + "13 12 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n14 12 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	const v2 = base + "13 12 0:22 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	const cpu, unified = "sys/fs/cgroup/cpu/", "sys/fs/cgroup/unified/"
	const stat1, stat2 = "nr_periods 75\nnr_throttled 62\nthrottled_time 5000000\n", "usage_usec 9\nnr_periods 75\nnr_throttled 62\nthrottled_usec 5000\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  CPULimit // the zero value: no limit
	}{
		{"cgroup v1: quota and period", map[string]string{"proc/self/mountinfo": v1, "proc/self/cgroup": "4:memory:/x\n3:cpu,cpuacct:/a/b\n",
			cpu + "a/b/cpu.cfs_quota_us": "5000\n", cpu + "a/b/cpu.cfs_period_us": "100000\n", cpu + "a/b/cpu.stat": stat1},
			CPULimit{0.05, "/a/b", "echo -1 > /sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", 75, 62, 5_000_000}},
		{"cgroup v2: both in one file", map[string]string{"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/a/b\n",
			unified + "cgroup.controllers": "cpu\n", unified + "a/b/cpu.max": "5000 100000\n", unified + "a/b/cpu.stat": stat2},
			CPULimit{0.05, "/a/b", "echo max > /sys/fs/cgroup/unified/a/b/cpu.max", 75, 62, 5_000_000}},
		{"lower limit of the parent", map[string]string{"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/a/b\n",
			unified + "cgroup.controllers": "cpu\n", unified + "a/b/cpu.max": "200000 100000\n", unified + "a/cpu.max": "50000 100000\n"},
			CPULimit{CPUs: 0.5, Group: "/a", Lift: "echo max > /sys/fs/cgroup/unified/a/cpu.max"}},
		{"mount of the own cgroup", map[string]string{
			"proc/self/mountinfo": base + "13 12 0:22 /docker/1 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "proc/self/cgroup": "3:cpu:/docker/1/in\n",
			cpu + "cpu.cfs_quota_us": "150000\n", cpu + "cpu.cfs_period_us": "100000\n"},
			CPULimit{CPUs: 1.5, Group: "/docker/1", Lift: "echo -1 > /sys/fs/cgroup/cpu/cpu.cfs_quota_us"}},
		{"no quota", map[string]string{"proc/self/mountinfo": v1, "proc/self/cgroup": "3:cpu,cpuacct:/a\n",
			cpu + "a/cpu.cfs_quota_us": "-1\n", cpu + "a/cpu.cfs_period_us": "100000\n"}, CPULimit{}},
		{"max", map[string]string{"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/a\n", unified + "cgroup.controllers": "cpu\n",
			unified + "a/cpu.max": "max 100000\n"}, CPULimit{}},
		{"group outside of the mount", map[string]string{"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/../a\n",
			unified + "cgroup.controllers": "cpu\n", unified + "a/cpu.max": "5000 100000\n"}, CPULimit{}},
		{"zero period", map[string]string{"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/a\n", unified + "cgroup.controllers": "cpu\n",
			unified + "a/cpu.max": "5000 0\n"}, CPULimit{}},
		{"unreadable files", nil, CPULimit{}},
	} {
		root := t.TempDir()
		for name, text := range tt.files {
			must.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
			must.Write(t, filepath.Join(root, name), text)
		}
		got, limited := Tightest(machine.Root(root))
		check.That(t, got == tt.want && limited == (tt.want.CPUs > 0), "%s: %+v, %v; want %+v", tt.name, got, limited, tt.want)
	}
}

func TestThrottlingCountsSinceBeginOrGroupCreation(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := func(name, text string) { must.Write(t, filepath.Join(root, name), text) }
	stat := func(group string, periods, throttled, ns int) {
		file("cpu/"+group+"/cpu.cfs_quota_us", "5000\n")
		file("cpu/"+group+"/cpu.cfs_period_us", "100000\n")
		file("cpu/"+group+"/cpu.stat", fmt.Sprintf("nr_periods %d\nnr_throttled %d\nthrottled_time %d\n", periods, throttled, ns))
	}
	file("proc/1/cgroup", "3:cpu:/daemon\n")
	file("proc/2/cgroup", "3:cpu:/pods/new\n")
	file("proc/3/cgroup", "3:cpu:/pods/new\n")
	mount := Hierarchy{Version: 1, Mount: "/cpu", Root: "/", Controllers: []string{"cpu"}}
	of := &Throttling{root: machine.Root(root), hierarchies: []Hierarchy{mount}, known: map[string]bool{}}
	made := func(group string) bool { return group == "/pods/new" }
	for _, c := range []struct {
		name        string
		pods, other int // throttled periods of /pods since the previous reading, and of /daemon
		want        string
	}{
		{"existing group is unknown at first", 3, 0, "/pods/new"},
		{"existing group counts from the next begin", 2, 0, "/pods 2, /pods/new"},
		{"group of a daemon counts from the begin", 0, 4, "/daemon 4, /pods/new"},
		{"group without throttling is not listed", 0, 0, "/pods/new"},
	} {
		stat("pods", 10, 5, 700)
		stat("daemon", 10, 5, 700)
		of.Begin([]int{1})
		stat("pods", 20, 5+c.pods, 700+c.pods)
		stat("daemon", 20, 5+c.other, 700+c.other)
		stat("pods/new", 4, 1, 9)
		var got []string
		for _, h := range of.End([]int{1, 2, 3, 4}, made) {
			switch n := h.Throttled; {
			case h.Group == "/pods/new" && h == record.Throttled{Group: "/pods/new", CPUs: 0.05, Periods: 4, Throttled: 1, Held: 9}:
				got = append(got, h.Group)
			case h == record.Throttled{Group: h.Group, CPUs: 0.05, Periods: 10, Throttled: n, Held: n}:
				got = append(got, fmt.Sprintf("%s %d", h.Group, n))
			default:
				t.Errorf("%s: %+v", c.name, h)
			}
		}
		check.Equal(t, c.name, strings.Join(got, ", "), c.want)
	}
}
