package nodestat

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestOOMKills(t *testing.T) {
	t.Parallel()
	for claim, c := range map[string]struct {
		text string
		want int64 // -1: not known
	}{
		"counted since Linux 4.13":     {"nr_free_pages 12\noom_kill 3\nnuma_hit 4\n", 3},
		"none is a count, too":         {"oom_kill 0\n", 0},
		"an older kernel has no line":  {"nr_free_pages 12\nnot_oom_kill 3\n", -1},
		"a word is no number":          {"oom_kill many\n", -1},
		"below 0 is no number of them": {"oom_kill -3\n", -1},
	} {
		root := t.TempDir()
		must.OK(t, os.MkdirAll(filepath.Join(root, "proc"), 0o755))
		must.OK(t, os.WriteFile(filepath.Join(root, "proc/vmstat"), []byte(c.text), 0o644))
		got := oomKills(machine.Root(root))
		if (got == nil) != (c.want < 0) || got != nil && *got != c.want {
			t.Errorf("%s: %v, want %d", claim, got, c.want)
		}
	}
	if got := oomKills(machine.Root(t.TempDir())); got != nil {
		t.Errorf("without the file: %d", *got)
	}
}
