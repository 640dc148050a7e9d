package machine

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestCgroups(t *testing.T) {
	v1 := must.Get(Root("testdata/v1").Cgroups())(t)
	want := Cgroups{
		{"/sys/fs/cgroup/systemd", 1, nil, "/docker/0a1b"},
		{"/sys/fs/cgroup/cpu,cpuacct", 1, []string{"cpu", "cpuacct"}, "/docker/0a1b"},
		{"/sys/fs/cgroup/memory", 1, []string{"memory"}, "/docker/0a1b"},
		{"/sys/fs/cgroup/pids", 1, []string{"pids"}, "/docker/0a1b"},
	}
	check.Equal(t, "v1", v1, want)

	v2 := must.Get(Root("testdata/v2").Cgroups())(t)
	want = Cgroups{{"/sys/fs/cgroup", 2, []string{"cpu", "cpuset", "hugetlb", "io", "memory", "misc", "pids", "rdma"}, "/"}}
	check.Equal(t, "v2", v2, want)
}

func TestFindController(t *testing.T) {
	c := must.Get(Root("testdata/hybrid").Cgroups())(t)
	for _, f := range []struct {
		claim, controller, mountpoint string
		version                       int
		ok                            bool
	}{
		{"controller of a v1 hierarchy", "memory", "/sys/fs/cgroup/memory", 1, true},
		{"controller of the v2 hierarchy", "hugetlb", "/sys/fs/cgroup/unified", 2, true},
		{"missing controller", "io", "", 0, false},
		{"name of a hierarchy", "systemd", "", 0, false},
	} {
		h, ok := c.Find(f.controller)
		check.That(t, h.Mount == f.mountpoint && h.Version == f.version && ok == f.ok,
			"%s: %q has mount %q, version %d, %v", f.claim, f.controller, h.Mount, h.Version, ok)
	}
}

// base is the mountinfo of a machine without cgroup hierarchies.
const base = `10 1 8:1 / / rw - ext4 /dev/sda1 rw
11 10 0:20 / /sys rw - sysfs sysfs rw
12 11 0:21 / /sys/fs/cgroup rw - tmpfs tmpfs rw
`

func TestReadCgroups(t *testing.T) {
	for _, c := range []struct {
		claim, mountinfo, mode string
		at                     []string // the expected mountpoints, v1 first
	}{
		{"nothing mounted", base, ModeNone, nil},
		{"empty list", "", ModeNone, nil},
		{"covered hierarchy",
			base + "13 12 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
				"14 12 0:23 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
				"15 14 0:24 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			ModeV1, []string{"/sys/fs/cgroup/memory"}},
		{"hierarchy mounted over a covered one",
			base + "13 12 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
				"14 12 0:23 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
				"15 14 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
			ModeV1, []string{"/sys/fs/cgroup/cpu"}},
		{"hierarchy mounted twice",
			base + "13 10 0:22 / /mnt/cpu rw - cgroup cgroup rw,cpu\n" +
				"14 12 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
			ModeV1, []string{"/sys/fs/cgroup/cpu"}},
		{"shared and named hierarchies",
			base + "13 10 0:22 / /c/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" +
				"14 10 0:23 / /c/systemd rw - cgroup cgroup rw,xattr,release_agent=/x,name=systemd\n",
			ModeV1, []string{"/c/cpu", "/c/systemd"}},
		{"mount of a part and of the whole",
			base + "13 10 0:22 /docker/1 /x rw - cgroup cgroup rw,memory\n14 10 0:22 / /a rw - cgroup cgroup rw,memory\n", ModeV1, []string{"/a"}},
		{"cyclic list",
			"10 11 8:1 / / rw - ext4 a rw\n11 10 8:1 / / rw - ext4 a rw\n", ModeNone, nil},
		{"chroot without its own mount",
			"13 12 0:22 / /cg rw - cgroup cgroup rw,pids\n", ModeV1, []string{"/cg"}},
	} {
		got := must.Get(readCgroups(strings.NewReader(c.mountinfo), t.TempDir()))(t)
		var at []string
		for _, h := range got {
			at = append(at, h.Mount)
		}
		check.That(t, got.Mode() == c.mode && reflect.DeepEqual(at, c.at), "%s: mode %s, mounts %v; want %s, %v", c.claim, got.Mode(), at, c.mode, c.at)
	}
}

func TestReadCgroupsFailsWithoutControllersOfV2(t *testing.T) {
	v2 := base + "13 12 0:22 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	c, err := readCgroups(strings.NewReader(v2), t.TempDir())
	check.That(t, err != nil, "cgroup2 without cgroup.controllers: %+v", c)
	c, err = readCgroups(strings.NewReader("not a mountinfo\n"), "")
	check.That(t, err != nil, "malformed mountinfo: %+v", c)
}
