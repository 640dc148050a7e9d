package kata

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestOnlyOwnGroupsOutsideOfPodsAreRemoved(t *testing.T) {
	hs := []cgroup.Hierarchy{{Mount: t.TempDir()}, {Mount: t.TempDir()}, {Mount: t.TempDir()}}
	for _, dir := range []string{
		filepath.Join(hs[0].Mount, overhead, "tare-x-0-1"), filepath.Join(hs[1].Mount, overhead, "tare-x-0-1"), filepath.Join(hs[1].Mount, overhead, "web"),
		filepath.Join(hs[1].Mount, overhead, "tare-x-0-2", "in-use"), filepath.Join(hs[1].Mount, "tare-x-0-3"),
	} {
		must.OK(t, os.MkdirAll(dir, 0o755))
	}
	ids := Overheads(hs, func(id string) bool { return strings.HasPrefix(id, "tare-x-") })
	if !slices.Equal(ids, []string{"tare-x-0-1", "tare-x-0-2"}) {
		t.Errorf("%q", ids)
	}
	removed, err := RemoveOverheads(hs, ids)
	if err == nil || !slices.Equal(removed, []string{"/kata_overhead/tare-x-0-1"}) {
		t.Errorf("%q, %v", removed, err)
	}
	if left := Overheads(hs, func(string) bool { return true }); !slices.Equal(left, []string{"tare-x-0-2", "web"}) {
		t.Errorf("left: %q", left)
	}
}
