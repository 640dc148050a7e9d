package datapath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
)

// runName is what a run's id can be: no path, and short enough for a folder's name.
var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// Place makes a run's own folder of cgroup v2, tare-run-ID below where that is
// mounted, pure or beside v1. It needs no controllers to attach programs there.
// It is no error where the run has it already.
//
// remove ends what runs in the folder and takes it away, with all below it; a
// second time it does nothing.
func Place(runID string) (path string, remove func() error, err error) {
	if len(runID) > 64 || !runName.MatchString(runID) {
		return "", nil, fmt.Errorf("the run %q cannot be part of a cgroup's name", runID)
	}
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return "", nil, err
	}
	return place(hs, cgroup.Prefix+runID)
}

func place(hs []cgroup.Hierarchy, name string) (path string, remove func() error, err error) {
	for _, h := range hs {
		if h.Version != 2 {
			continue
		}
		path := filepath.Join(h.Mount, name)
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
			return "", nil, fmt.Errorf("make the run's folder of cgroup v2: %w", err)
		}
		// Not in other hierarchies: there a group of this name is for others to end.
		only := []cgroup.Hierarchy{h}
		return path, func() error { return cgroup.Remove(only, name) }, nil
	}
	return "", nil, fmt.Errorf("a cgroup to attach programs to: %w: no cgroup v2 is mounted; one without controllers is enough, beside v1, too: mount -t cgroup2 none FOLDER", errUnsupported)
}
