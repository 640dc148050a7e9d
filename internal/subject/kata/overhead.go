package kata

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
)

// overhead is the cgroup below which Kata's Go runtime has one for each sandbox,
// with what is in no pod's (docs/design/host-cgroups.md). Some versions leave it
// behind when the sandbox has gone.
const overhead = "kata_overhead"

// Overheads are the ids of the sandboxes for which there is such a group, in any
// hierarchy, as far as they are mine.
func Overheads(hs []cgroup.Hierarchy, mine func(id string) bool) []string {
	var ids []string
	for _, h := range hs {
		entries, _ := os.ReadDir(filepath.Join(h.Mount, overhead)) // most machines have none
		for _, e := range entries {
			if e.IsDir() && mine(e.Name()) && !slices.Contains(ids, e.Name()) {
				ids = append(ids, e.Name())
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// RemoveOverheads removes those of sandboxes that have gone, and returns their
// paths. One that still holds a process is none that was left behind, and stays.
func RemoveOverheads(hs []cgroup.Hierarchy, ids []string) (removed []string, err error) {
	var errs []error
	for _, id := range ids {
		gone := true
		for _, h := range hs {
			dir := filepath.Join(h.Mount, overhead, id)
			err := unix.Rmdir(dir)
			for until := time.Now().Add(dying); errors.Is(err, unix.EBUSY) && time.Now().Before(until); err = unix.Rmdir(dir) {
				time.Sleep(20 * time.Millisecond)
			}
			if err != nil && !errors.Is(err, unix.ENOENT) {
				gone = false
				errs = append(errs, fmt.Errorf("rmdir %s, which Kata left: %w", dir, err))
			}
		}
		if gone {
			removed = append(removed, OverheadPath(id))
		}
	}
	return removed, errors.Join(errs...)
}

// dying is how long the processes of a sandbox that was removed may take to go.
const dying = 5 * time.Second

// OverheadPath is that group's, from the root of the hierarchies.
func OverheadPath(id string) string { return "/" + overhead + "/" + id }
