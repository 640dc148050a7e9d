package cgroup

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/thread"
)

// Without2 makes a mount namespace without cgroup2 hierarchies, for runtimes that refuse a
// hybrid layout. The namespace lives as long as the file or a process in it.
func Without2(hs []Hierarchy) (ns *os.File, err error) {
	err = thread.Apart(func() (err error) {
		ns, err = unmounted(hs)
		return err
	})
	return ns, err
}

func unmounted(hs []Hierarchy) (*os.File, error) {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return nil, fmt.Errorf("make a private mount namespace: unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make a private mount namespace: make / private: %w", err)
	}
	for _, h := range hs {
		if h.Version != 2 {
			continue
		}
		if err := unix.Unmount(h.Mount, unix.MNT_DETACH); err != nil {
			return nil, fmt.Errorf("unmount %s in the private mount namespace: %w", h.Mount, err)
		}
	}
	return os.Open("/proc/thread-self/ns/mnt")
}
