package cgroup

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
)

func TestHierarchiesAreTakenFromMountsOnceEach(t *testing.T) {
	const base = "10 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	for _, c := range []struct {
		name, mounts string
		want         []Hierarchy
		mode         string
	}{
		{"nothing is mounted", base, nil, None},
		{"two controllers share a v1 hierarchy", base +
			"13 10 0:22 / /c/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" +
			"14 10 0:23 / /c/systemd rw - cgroup cgroup rw,xattr,release_agent=/x,name=systemd\n",
			[]Hierarchy{{Mount: "/c/cpu", Version: 1, Controllers: []string{"cpu", "cpuacct"}, Root: "/"}, {Mount: "/c/systemd", Version: 1, Root: "/"}}, machine.ModeV1},
		{"a hierarchy mounted twice counts once, a container's part of it not at all", base +
			"13 10 0:22 /docker/1 /x rw - cgroup cgroup rw,memory\n" +
			"14 10 0:22 / /a rw - cgroup cgroup rw,memory\n" +
			"15 10 0:22 / /b rw - cgroup cgroup rw,memory\n" +
			"16 10 0:23 /docker/1 /y rw - cgroup cgroup rw,pids\n",
			[]Hierarchy{{Mount: "/a", Version: 1, Controllers: []string{"memory"}, Root: "/"}}, machine.ModeV1},
		{"v1 beside cgroup2 is hybrid, controllers or not", base +
			"13 10 0:22 / /a rw - cgroup cgroup rw,memory\n" +
			"14 10 0:23 / /none rw - cgroup2 cgroup2 rw\n",
			[]Hierarchy{{Mount: "/a", Version: 1, Controllers: []string{"memory"}, Root: "/"}, {Mount: "/none", Version: 2, Controllers: []string{}, Root: "/"}}, Hybrid},
	} {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, "none"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "none/cgroup.controllers"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		mounted, err := machine.ReadCgroups(strings.NewReader(c.mounts), root)
		var got []Hierarchy
		got = append(got, whole(mounted)...)
		if err != nil || !reflect.DeepEqual(got, c.want) || ModeOf(got) != c.mode {
			t.Errorf("%s: %+v, %s, %v", c.name, got, ModeOf(got), err)
		}
	}
}

func TestLimitsAreWrittenInTheHierarchysOwnFiles(t *testing.T) {
	v1 := Hierarchy{Version: 1, Controllers: []string{"memory", "cpu"}}
	v2 := Hierarchy{Version: 2, Controllers: []string{"memory", "pids", "cpu"}}
	wanted := Wanted{Memory: 1 << 20, Pids: 7, CPUShares: 1024, Quota: 150000, Period: 100000}
	if got := Limits(v1, wanted); !reflect.DeepEqual(got, []Limit{{"memory.limit_in_bytes", "1048576"}, {"cpu.shares", "1024"}, {"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", "150000"}}) {
		t.Errorf("v1: %v", got)
	}
	// 1024 shares are weight 39: runc's and crun's conversion.
	if got := Limits(v2, wanted); !reflect.DeepEqual(got, []Limit{{"memory.max", "1048576"}, {"pids.max", "7"}, {"cpu.weight", "39"}, {"cpu.max", "150000 100000"}}) {
		t.Errorf("v2: %v", got)
	}
	for _, h := range []Hierarchy{v1, v2} {
		if got := Limits(h, Wanted{Period: 100000}); got != nil {
			t.Errorf("no limits: %v", got)
		}
	}
}

func TestWhatIsNotTaresIsRefused(t *testing.T) {
	root := t.TempDir()
	hs := []Hierarchy{{Mount: root, Version: 1, Controllers: []string{"memory"}}}
	for _, name := range []string{"", "/", "docker", "tare-", "tare-services", "tare-run-", "tare-run-x/../docker", "../x", "kubepods/tare-run-x"} {
		if Remove(hs, name) == nil || Delegate(hs, name, "memory") == nil {
			t.Errorf("%q was not refused", name)
		}
	}
	for _, dir := range []string{"docker", "tare-run-abc", "tare-run-", "tare-abc"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := Find(hs); !reflect.DeepEqual(got, []string{"tare-run-abc"}) {
		t.Errorf("found %v", got)
	}
}
