// Package mounts finds and detaches what is mounted below a folder that a run
// made: gVisor keeps a network namespace there, for instance. And it removes
// such folders, never through a mount.
package mounts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Below lists the mount points at and below a folder, outermost first. The
// kernel's list has resolved paths, so the folder's is resolved too. A folder
// that does not exist has none.
func Below(dir string) ([]string, error) {
	dir, err := resolved(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return m.Mountpoint != dir && !strings.HasPrefix(m.Mountpoint, dir+"/"), false
	})
	if err != nil {
		return nil, fmt.Errorf("read the mounts below %s: %w", dir, err)
	}
	var out []string
	for _, m := range list {
		out = append(out, m.Mountpoint)
	}
	return out, nil
}

func resolved(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// RemoveTree detaches everything mounted at and below a folder, innermost
// first, and removes the folder. If something is still mounted there, nothing
// is removed. A folder that does not exist is no error.
func RemoveTree(dir string) error {
	points, err := Below(dir)
	if err != nil {
		return err
	}
	for _, p := range slices.Backward(points) {
		if err := unix.Unmount(p, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmount %s: %w", p, err)
		}
	}
	// A mount may have been under another one.
	if left, err := Below(dir); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not removed: still mounted below it: %s", dir, strings.Join(left, ", ")))
	}
	return os.RemoveAll(dir)
}
