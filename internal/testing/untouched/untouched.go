// Package untouched compares the state of a machine before and after a test. It fails the
// test if a process, cgroup, mount or network namespace that tare could have created is
// left.
package untouched

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/must"
)

// Check registers the comparison at the end of the test. dir is the parent of the run
// folders of the test. Only objects with this path are checked, so concurrent tests do not
// interfere. ids, if not nil, returns the ids of runs. The cgroups of these runs must be
// gone.
func Check(t *testing.T, dir string, ids func() []string) {
	t.Helper()
	if found := processes(dir); len(found) > 0 {
		t.Fatalf("before the test there are already:\n  %s", strings.Join(found, "\n  "))
	}
	t.Cleanup(func() {
		// A killed process exits asynchronously.
		deadline := time.Now().Add(time.Minute)
		for {
			left := look(t, dir, ids)
			if len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("left behind:\n  %s", strings.Join(left, "\n  "))
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
}

func look(t *testing.T, dir string, ids func() []string) []string {
	left := processes(dir)
	points, err := mounts.Below(dir)
	must.OK(t, err)
	for _, p := range points {
		left = append(left, "mount "+p)
	}
	folders, _ := filepath.Glob(filepath.Join(dir, "*", "????????"))
	for _, f := range folders {
		if info, err := os.Stat(f); err == nil && info.IsDir() {
			left = append(left, "folder "+f)
		}
	}
	hs, err := cgroup.Hierarchies()
	must.OK(t, err)
	if ids != nil {
		for _, id := range ids() {
			name := cgroup.Prefix + id
			for _, h := range hs {
				if _, err := os.Stat(filepath.Join(h.Mount, name)); err == nil {
					left = append(left, fmt.Sprintf("cgroup %s in %s, processes %v", name, h.Mount, cgroup.Procs(hs, name)))
				}
			}
		}
	}
	return left
}

// processes lists the processes with the folder on their command line, except this one.
func processes(dir string) []string {
	var out []string
	for _, pid := range procs.All() {
		line := strings.Join(procs.ArgsOf(pid), " ")
		if pid != os.Getpid() && strings.Contains(line, dir) {
			out = append(out, fmt.Sprintf("process %d: %s", pid, line))
		}
	}
	return out
}

// Alone serializes tests that create or remove leftovers. Leftovers of interrupted runs
// are found by cgroup names, for any test.
func Alone(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "tare-test-leftovers.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	must.OK(t, err)
	must.OK(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	t.Cleanup(func() { _ = f.Close() })
}
