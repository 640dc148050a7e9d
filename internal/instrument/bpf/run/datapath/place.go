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

// runName matches valid run ids: no path separators.
var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// Place creates the cgroup v2 directory of a run, tare-run-ID, below the mount point of
// cgroup v2 (pure or hybrid). Attaching programs there needs no controllers. An
// existing directory is not an error.
// remove kills all processes in the directory and removes it with everything below it.
// It may be called more than once.
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
		// Only this hierarchy: a group with the same name elsewhere belongs to
		// another tool.
		only := []cgroup.Hierarchy{h}
		return path, func() error { return cgroup.Remove(only, name) }, nil
	}
	return "", nil, fmt.Errorf("a cgroup to attach programs to: %w: no cgroup v2 is mounted; one without controllers is enough, also next to v1: mount -t cgroup2 none FOLDER", errUnsupported)
}
