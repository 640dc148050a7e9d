package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
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
		file   string
		ok     bool
	}{
		"a group above has less left than the own one": {one, "3:pids:/a/b\n", map[string]string{
			"g/a/pids.max": "100\n", "g/a/pids.current": "90\n", "g/a/b/pids.max": "50\n", "g/a/b/pids.current": "1\n"}, 10, "/g/a/pids.max", true},
		"more are there than the limit allows": {one, "3:pids:/a\n", map[string]string{"g/a/pids.max": "5\n", "g/a/pids.current": "9\n"}, 0, "/g/a/pids.max", true},
		"no limit is no number":                {two, "0::/a\n", map[string]string{"g/a/pids.max": "max\n", "g/a/pids.current": "9\n"}, 0, "", false},
		"the group of version 2":               {two, "0::/a\n", map[string]string{"g/a/pids.max": "20\n", "g/a/pids.current": "9\n"}, 11, "/g/a/pids.max", true},
		"a limit without its use says nothing": {one, "3:pids:/a\n", map[string]string{"g/a/pids.max": "20\n"}, 0, "", false},
		"the root has no limit":                {one, "3:pids:/\n", map[string]string{"g/pids.max": "20\n", "g/pids.current": "9\n"}, 0, "", false},
		"a hierarchy that is not mounted":      {nil, "3:pids:/a\n", nil, 0, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			left, file, ok := PIDsLeft(machine.Root(root), c.hs, procs.ParseGroups(c.groups))
			if left != c.left || file != c.file || ok != c.ok {
				t.Errorf("%d, %s, %v", left, file, ok)
			}
		})
	}
}
