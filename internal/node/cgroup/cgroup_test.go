package cgroup

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// rootOf creates the root of a machine with the given files.
func rootOf(t *testing.T, below string, files map[string]string) machine.Root {
	t.Helper()
	root := t.TempDir()
	for file, text := range files {
		must.Write(t, filepath.Join(root, below, file), text)
	}
	return machine.Root(root)
}

func TestMountOfAPartOfAHierarchyIsSkipped(t *testing.T) {
	all := []Hierarchy{{Mount: "/a", Version: 1, Controllers: []string{"memory"}, Root: "/"}, {Mount: "/y", Version: 1, Controllers: []string{"pids"}, Root: "/docker/1"}, {Mount: "/none", Version: 2, Root: "/"}}
	if got := whole(all); len(got) != 2 || got[0].Mount != "/a" || got[1].Mount != "/none" || ModeOf(got) != Hybrid || ModeOf(got[:1]) != machine.ModeV1 || ModeOf(nil) != None {
		t.Errorf("%+v, %s", got, ModeOf(got))
	}
}

func TestLimitsUseTheFilesOfTheHierarchy(t *testing.T) {
	v1 := Hierarchy{Version: 1, Controllers: []string{"memory", "cpu"}}
	v2 := Hierarchy{Version: 2, Controllers: []string{"memory", "pids", "cpu"}}
	wanted := Wanted{Memory: 1 << 20, Pids: 7, CPUShares: 1024, Quota: 150000, Period: 100000}
	check.Equal(t, "v1", Limits(v1, wanted), []Limit{
		{"memory.limit_in_bytes", "1048576"}, {"cpu.shares", "1024"}, {"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", "150000"}})
	// 1024 shares are weight 39, as converted by runc and crun.
	check.Equal(t, "v2", Limits(v2, wanted), []Limit{
		{"memory.max", "1048576"}, {"pids.max", "7"}, {"cpu.weight", "39"}, {"cpu.max", "150000 100000"}})
	for _, h := range []Hierarchy{v1, v2} {
		got := Limits(h, Wanted{Period: 100000})
		check.That(t, got == nil, "no limits: %v", got)
	}
}

func TestGroupsOfOtherNamesAreRefused(t *testing.T) {
	root := t.TempDir()
	hs := []Hierarchy{{Mount: root, Version: 1, Controllers: []string{"memory"}}}
	for _, name := range []string{"", "/", "docker", "tare-", "tare-services", "tare-run-", "tare-run-x/../docker", "../x", "kubepods/tare-run-x"} {
		check.That(t, Remove(hs, name) != nil && Delegate(hs, name, "memory") != nil, "%q was not refused", name)
	}
}

// leftCases maps a name to limits and the expected remainder.
type leftCases map[string]struct {
	hs          []Hierarchy
	groups      string
	files       map[string]string
	left, limit int64
	file        string
	ok          bool
}

func (all leftCases) hold(t *testing.T, of func(machine.Root, []Hierarchy, *procs.Groups) (left, limit int64, file string, ok bool)) {
	t.Helper()
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left, limit, file, ok := of(rootOf(t, "", c.files), c.hs, procs.ParseGroups(c.groups))
			check.That(t, left == c.left && limit == c.limit && file == c.file && ok == c.ok, "%d of %d left, file %s, %v", left, limit, file, ok)
		})
	}
}

func TestLowestRemainderOfAllLimitsCounts(t *testing.T) {
	t.Parallel()
	one := []Hierarchy{{Mount: "/g", Version: 1, Controllers: []string{"pids"}, Root: "/"}}
	two := []Hierarchy{{Mount: "/g", Version: 2, Controllers: []string{"pids"}, Root: "/"}}
	leftCases{
		"parent with the lower remainder": {one, "3:pids:/a/b\n", map[string]string{
			"g/a/pids.max": "100\n", "g/a/pids.current": "90\n", "g/a/b/pids.max": "50\n", "g/a/b/pids.current": "1\n"}, 10, 100, "/g/a/pids.max", true},
		"usage above the limit":    {one, "3:pids:/a\n", map[string]string{"g/a/pids.max": "5\n", "g/a/pids.current": "9\n"}, 0, 5, "/g/a/pids.max", true},
		"max means no limit":       {two, "0::/a\n", map[string]string{"g/a/pids.max": "max\n", "g/a/pids.current": "9\n"}, 0, 0, "", false},
		"cgroup v2":                {two, "0::/a\n", map[string]string{"g/a/pids.max": "20\n", "g/a/pids.current": "9\n"}, 11, 20, "/g/a/pids.max", true},
		"limit with unknown usage": {one, "3:pids:/a\n", map[string]string{"g/a/pids.max": "20\n"}, 0, 0, "", false},
		"root without a limit":     {one, "3:pids:/\n", map[string]string{"g/pids.events": "max 0\n"}, 0, 0, "", false},
		"cgroup namespace":         {two, "0::/\n", map[string]string{"g/pids.max": "20\n", "g/pids.current": "9\n"}, 11, 20, "/g/pids.max", true},
		"mount of the own cgroup":  {one, "3:pids:/docker/a\n", map[string]string{"g/pids.max": "20\n", "g/pids.current": "9\n"}, 11, 20, "/g/pids.max", true},
		"unmounted hierarchy":      {nil, "3:pids:/a\n", nil, 0, 0, "", false},
	}.hold(t, PIDsLeft)
}

func TestPageCacheDoesNotCountAsUsedMemory(t *testing.T) {
	t.Parallel()
	one := []Hierarchy{{Mount: "/g", Version: 1, Controllers: []string{"memory"}, Root: "/docker/a"}}
	two := []Hierarchy{{Mount: "/g", Version: 2, Controllers: []string{"memory"}, Root: "/"}}
	leftCases{
		"cgroup v2, limit of the parent": {two, "0::/a/b\n", map[string]string{
			"g/a/memory.max": "1000\n", "g/a/memory.current": "900\n", "g/a/memory.stat": "anon 500\ninactive_file 100\nactive_file 200\n",
			"g/a/b/memory.max": "max\n", "g/a/b/memory.current": "800\n"}, 400, 1000, "/g/a/memory.max", true},
		"cgroup v1, mount of the own cgroup": {one, "4:memory:/docker/a\n", map[string]string{
			"g/memory.limit_in_bytes": "1000\n", "g/memory.usage_in_bytes": "900\n", "g/memory.stat": "active_file 1\ntotal_active_file 300\n"},
			400, 1000, "/g/memory.limit_in_bytes", true},
		"cgroup v1, no limit": {one, "4:memory:/docker/a\n", map[string]string{
			"g/memory.limit_in_bytes": "9223372036854771712\n", "g/memory.usage_in_bytes": "900\n"}, 0, 0, "", false},
	}.hold(t, MemoryLeft)
}

func TestRefusalsCountInTheGroupOrItsParent(t *testing.T) {
	t.Parallel()
	hs := []Hierarchy{{Mount: "/g", Version: 1, Controllers: []string{"pids"}, Root: "/"}}
	for name, c := range map[string]struct {
		files             map[string]string
		own, above, limit int64
	}{
		"own limit":                              {map[string]string{"a/b/pids.max": "64\n", "a/b/pids.events": "max 3\n", "a/pids.max": "9\n", "a/pids.events": "max 7\n"}, 3, 0, 64},
		"limit of the pod, counted in the child": {map[string]string{"a/b/pids.max": "max\n", "a/b/pids.events": "max 3\n", "a/pids.max": "96\n", "a/pids.events": "max 0\n"}, 3, 0, 96},
		"limit of the pod, counted in the pod":   {map[string]string{"a/b/pids.max": "max\n", "a/b/pids.events": "max 0\n", "a/pids.max": "96\n", "a/pids.events": "max 2\n"}, 0, 2, 96},
		"no limit":                               {map[string]string{"a/b/pids.max": "max\n", "a/b/pids.events": "max 0\n", "a/pids.max": "max\n"}, 0, 0, 0},
		"malformed file":                         {map[string]string{"a/b/pids.max": "64\n", "a/b/pids.events": "most 3\n"}, 0, 0, 64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := rootOf(t, "g", c.files)
			own, above, limit := PIDsRefused(root, hs, procs.ParseGroups("3:pids:/a/b\n"))
			check.That(t, own == c.own && above == c.above && limit == c.limit, "refusals %d and %d, limit %d", own, above, limit)
		})
	}
}

// /proc/self refers to the first thread. With GOMAXPROCS=1 a new goroutine often runs on
// that thread.
func TestCallingProcessKeepsItsNamespaces(t *testing.T) {
	need.Root(t)
	hs := must.Get(Hierarchies())(t)
	before := must.Get(os.Readlink("/proc/self/ns/mnt"))(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 50 {
		ns := must.Get(Without2(hs))(t)
		_ = ns.Close()
	}
	check.Equal(t, "mount namespace", must.Get(os.Readlink("/proc/self/ns/mnt"))(t), before)
}
