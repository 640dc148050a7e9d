package machine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestCPULimit(t *testing.T) {
	t.Parallel()
	const v1 = base + "13 12 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n14 12 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	const v2 = base + "13 12 0:22 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	const cpu, unified = "sys/fs/cgroup/cpu/", "sys/fs/cgroup/unified/"
	const stat1, stat2 = "nr_periods 75\nnr_throttled 62\nthrottled_time 5000000\n", "usage_usec 9\nnr_periods 75\nnr_throttled 62\nthrottled_usec 5000\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  CPULimit // none without CPUs
	}{
		{"a group of version 1 has a quota of a period", map[string]string{"proc/self/mountinfo": v1, "proc/self/cgroup": "4:memory:/x\n3:cpu,cpuacct:/a/b\n",
			cpu + "a/b/cpu.cfs_quota_us": "5000\n", cpu + "a/b/cpu.cfs_period_us": "100000\n", cpu + "a/b/cpu.stat": stat1},
			CPULimit{0.05, "/a/b", "echo -1 > /sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", 75, 62, 5_000_000}},
		{"one of version 2 has both in a file", map[string]string{"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/a/b\n",
			unified + "cgroup.controllers": "cpu\n", unified + "a/b/cpu.max": "5000 100000\n", unified + "a/b/cpu.stat": stat2},
			CPULimit{0.05, "/a/b", "echo max > /sys/fs/cgroup/unified/a/b/cpu.max", 75, 62, 5_000_000}},
		{"a group above it may have the tighter one", map[string]string{"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/a/b\n",
			unified + "cgroup.controllers": "cpu\n", unified + "a/b/cpu.max": "200000 100000\n", unified + "a/cpu.max": "50000 100000\n"},
			CPULimit{CPUs: 0.5, Group: "/a", Lift: "echo max > /sys/fs/cgroup/unified/a/cpu.max"}},
		{"a container without a namespace sees its own group at the mount", map[string]string{
			"proc/self/mountinfo": base + "13 12 0:22 /docker/1 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "proc/self/cgroup": "3:cpu:/docker/1/in\n",
			cpu + "cpu.cfs_quota_us": "150000\n", cpu + "cpu.cfs_period_us": "100000\n"},
			CPULimit{CPUs: 1.5, Group: "/docker/1", Lift: "echo -1 > /sys/fs/cgroup/cpu/cpu.cfs_quota_us"}},
		{"no quota is none", map[string]string{"proc/self/mountinfo": v1, "proc/self/cgroup": "3:cpu,cpuacct:/a\n",
			cpu + "a/cpu.cfs_quota_us": "-1\n", cpu + "a/cpu.cfs_period_us": "100000\n"}, CPULimit{}},
		{"max is none", map[string]string{"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/a\n", unified + "cgroup.controllers": "cpu\n",
			unified + "a/cpu.max": "max 100000\n"}, CPULimit{}},
		{"a group outside of the mount is not read", map[string]string{"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/../a\n",
			unified + "cgroup.controllers": "cpu\n", unified + "a/cpu.max": "5000 100000\n"}, CPULimit{}},
		{"a period of nothing is none", map[string]string{"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/a\n", unified + "cgroup.controllers": "cpu\n",
			unified + "a/cpu.max": "5000 0\n"}, CPULimit{}},
		{"nothing can be read", nil, CPULimit{}},
	} {
		root := t.TempDir()
		for name, text := range tt.files {
			must.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
			must.Write(t, filepath.Join(root, name), text)
		}
		if got, limited := Root(root).CPULimit(); got != tt.want || limited != (tt.want.CPUs > 0) {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, got, limited, tt.want)
		}
	}
}
