package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestTheLimitThatLeavesLeastCounts(t *testing.T) {
	t.Parallel()
	one := []Hierarchy{{Mount: "/g", Version: 1, Controllers: []string{"pids"}, Root: "/"}}
	two := []Hierarchy{{Mount: "/g", Version: 2, Controllers: []string{"pids"}, Root: "/"}}
	for name, c := range map[string]struct {
		hs     []Hierarchy
		groups string
		files  map[string]string
		left   int64
		limit  int64
		file   string
		ok     bool
	}{
		"a group above has less left than the own one": {one, "3:pids:/a/b\n", map[string]string{
			"g/a/pids.max": "100\n", "g/a/pids.current": "90\n", "g/a/b/pids.max": "50\n", "g/a/b/pids.current": "1\n"}, 10, 100, "/g/a/pids.max", true},
		"more are there than the limit allows": {one, "3:pids:/a\n", map[string]string{"g/a/pids.max": "5\n", "g/a/pids.current": "9\n"}, 0, 5, "/g/a/pids.max", true},
		"no limit is no number":                {two, "0::/a\n", map[string]string{"g/a/pids.max": "max\n", "g/a/pids.current": "9\n"}, 0, 0, "", false},
		"the group of version 2":               {two, "0::/a\n", map[string]string{"g/a/pids.max": "20\n", "g/a/pids.current": "9\n"}, 11, 20, "/g/a/pids.max", true},
		"a limit without its use says nothing": {one, "3:pids:/a\n", map[string]string{"g/a/pids.max": "20\n"}, 0, 0, "", false},
		"the root has no limit":                {one, "3:pids:/\n", map[string]string{"g/pids.events": "max 0\n"}, 0, 0, "", false},
		"a container's own group is its root":  {two, "0::/\n", map[string]string{"g/pids.max": "20\n", "g/pids.current": "9\n"}, 11, 20, "/g/pids.max", true},
		"a container's mount is its own group": {one, "3:pids:/docker/a\n", map[string]string{"g/pids.max": "20\n", "g/pids.current": "9\n"}, 11, 20, "/g/pids.max", true},
		"a hierarchy that is not mounted":      {nil, "3:pids:/a\n", nil, 0, 0, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(root, file)
				must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
				must.OK(t, os.WriteFile(path, []byte(text), 0o600))
			}
			left, limit, file, ok := PIDsLeft(machine.Root(root), c.hs, procs.ParseGroups(c.groups))
			if left != c.left || limit != c.limit || file != c.file || ok != c.ok {
				t.Errorf("%d of %d, %s, %v", left, limit, file, ok)
			}
		})
	}
}

func TestPageCacheIsNoMemoryThatALimitCountsOn(t *testing.T) {
	t.Parallel()
	one := []Hierarchy{{Mount: "/g", Version: 1, Controllers: []string{"memory"}, Root: "/docker/a"}}
	two := []Hierarchy{{Mount: "/g", Version: 2, Controllers: []string{"memory"}, Root: "/"}}
	for name, c := range map[string]struct {
		hs          []Hierarchy
		groups      string
		files       map[string]string
		left, limit int64
		file        string
		ok          bool
	}{
		"version 2, the limit above": {two, "0::/a/b\n", map[string]string{
			"g/a/memory.max": "1000\n", "g/a/memory.current": "900\n", "g/a/memory.stat": "anon 500\ninactive_file 100\nactive_file 200\n",
			"g/a/b/memory.max": "max\n", "g/a/b/memory.current": "800\n"}, 400, 1000, "/g/a/memory.max", true},
		"version 1, a container's own part": {one, "4:memory:/docker/a\n", map[string]string{
			"g/memory.limit_in_bytes": "1000\n", "g/memory.usage_in_bytes": "900\n", "g/memory.stat": "active_file 1\ntotal_active_file 300\n"},
			400, 1000, "/g/memory.limit_in_bytes", true},
		"version 1 has a number for none": {one, "4:memory:/docker/a\n", map[string]string{
			"g/memory.limit_in_bytes": "9223372036854771712\n", "g/memory.usage_in_bytes": "900\n"}, 0, 0, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(root, file)
				must.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)))
			}
			left, limit, file, ok := MemoryLeft(machine.Root(root), c.hs, procs.ParseGroups(c.groups))
			if left != c.left || limit != c.limit || file != c.file || ok != c.ok {
				t.Errorf("%d of %d, %s, %v", left, limit, file, ok)
			}
		})
	}
}

func TestARefusalIsOfTheOwnLimitOrOfTheOneAbove(t *testing.T) {
	t.Parallel()
	hs := []Hierarchy{{Mount: "/g", Version: 1, Controllers: []string{"pids"}, Root: "/"}}
	for name, c := range map[string]struct {
		files             map[string]string
		own, above, limit int64
	}{
		"its own":                     {map[string]string{"a/b/pids.max": "64\n", "a/b/pids.events": "max 3\n", "a/pids.max": "9\n", "a/pids.events": "max 7\n"}, 3, 0, 64},
		"its pod's, counted in it":    {map[string]string{"a/b/pids.max": "max\n", "a/b/pids.events": "max 3\n", "a/pids.max": "96\n", "a/pids.events": "max 0\n"}, 3, 0, 96},
		"its pod's, counted there":    {map[string]string{"a/b/pids.max": "max\n", "a/b/pids.events": "max 0\n", "a/pids.max": "96\n", "a/pids.events": "max 2\n"}, 0, 2, 96},
		"nobody's":                    {map[string]string{"a/b/pids.max": "max\n", "a/b/pids.events": "max 0\n", "a/pids.max": "max\n"}, 0, 0, 0},
		"a file that no kernel wrote": {map[string]string{"a/b/pids.max": "64\n", "a/b/pids.events": "most 3\n"}, 0, 0, 64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(root, "g", file)
				must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
				must.OK(t, os.WriteFile(path, []byte(text), 0o600))
			}
			if own, above, limit := PIDsRefused(machine.Root(root), hs, procs.ParseGroups("3:pids:/a/b\n")); own != c.own || above != c.above || limit != c.limit {
				t.Errorf("%d and %d times, for a limit of %d", own, above, limit)
			}
		})
	}
}
