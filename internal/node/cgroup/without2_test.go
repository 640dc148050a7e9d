package cgroup

import (
	"os"
	"runtime"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// TestTheProcessStaysWhereItIs asks what /proc/self shows, which is the first thread:
// with one thread at a time a new goroutine often runs on it.
func TestTheProcessStaysWhereItIs(t *testing.T) {
	need.Root(t)
	hs, err := Hierarchies()
	must.OK(t, err)
	before, err := os.Readlink("/proc/self/ns/mnt")
	must.OK(t, err)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 50 {
		ns, err := Without2(hs)
		must.OK(t, err)
		_ = ns.Close()
	}
	if after, err := os.Readlink("/proc/self/ns/mnt"); err != nil || after != before {
		t.Errorf("the process seems to be in %s, was in %s: %v", after, before, err)
	}
}
