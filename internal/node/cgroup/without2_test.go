package cgroup

import (
	"os"
	"runtime"
	"testing"
)

// TestTheProcessStaysWhereItIs asks what /proc/self shows, which is the first thread:
// with one thread at a time a new goroutine often runs on it.
func TestTheProcessStaysWhereItIs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	hs, err := Hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 50 {
		ns, err := Without2(hs)
		if err != nil {
			t.Fatal(err)
		}
		_ = ns.Close()
	}
	if after, err := os.Readlink("/proc/self/ns/mnt"); err != nil || after != before {
		t.Errorf("the process seems to be in %s, was in %s: %v", after, before, err)
	}
}
