package cgroup

import (
	"reflect"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
)

func TestAPartOfAHierarchyIsSomebodysView(t *testing.T) {
	all := []Hierarchy{{Mount: "/a", Version: 1, Controllers: []string{"memory"}, Root: "/"}, {Mount: "/y", Version: 1, Controllers: []string{"pids"}, Root: "/docker/1"}, {Mount: "/none", Version: 2, Root: "/"}}
	if got := whole(all); len(got) != 2 || got[0].Mount != "/a" || got[1].Mount != "/none" || ModeOf(got) != Hybrid || ModeOf(got[:1]) != machine.ModeV1 || ModeOf(nil) != None {
		t.Errorf("%+v, %s", got, ModeOf(got))
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
}
