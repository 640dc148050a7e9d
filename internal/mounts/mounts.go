// Package mounts finds and detaches mounts below a folder of a run, such as the network
// namespace that gVisor mounts there. It also removes such folders, never across a mount.
package mounts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Below lists the mount points at and below a folder, outermost first. The result is empty
// for a missing folder and for a link.
func Below(dir string) ([]string, error) {
	dir, err := resolved(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := whole(func(m *mountinfo.Info) (skip, stop bool) {
		return m.Mountpoint != dir && !strings.HasPrefix(m.Mountpoint, strings.TrimSuffix(dir, "/")+"/"), false
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

// patience limits how often the list is read again while other processes mount.
const patience = 100

// whole reads the list of mounts. The kernel returns it page by page, so a mount or unmount
// between two pages may hide a line. poll(2) reports that the list has changed since the
// last call, see mounts_poll in fs/proc_namespace.c; whole then reads it again. If it keeps
// changing, whole returns everything it saw: detaching a mount that is gone does no harm.
func whole(filter mountinfo.FilterFunc) (list []*mountinfo.Info, err error) {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []*mountinfo.Info
	for range patience {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		if list, err = mountinfo.GetMountsFromReader(f, filter); err != nil {
			return nil, err
		}
		ask := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}
		if _, err := unix.Poll(ask, 0); err == nil && ask[0].Revents&(unix.POLLERR|unix.POLLPRI) == 0 {
			return list, nil
		}
		for _, m := range list {
			if !slices.ContainsFunc(all, func(have *mountinfo.Info) bool { return have.ID == m.ID }) {
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// resolved returns a path as in the kernel's list: without links, except for the last
// element.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// RemoveTree detaches all mounts at and below a folder, innermost first, and removes the
// folder. It removes nothing if a mount is left. A missing folder is not an error. If dir
// is a link or a file, only that is removed.
func RemoveTree(dir string) error {
	points, err := Below(dir)
	if err != nil {
		return err
	}
	for _, p := range slices.Backward(points) {
		err := unix.Unmount(p, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // no longer mounted
			return fmt.Errorf("unmount %s: %w", p, err)
		}
	}
	// A mount may have hidden another one.
	if left, err := Below(dir); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not removed: still mounted below it: %s", dir, strings.Join(left, ", ")))
	}
	return os.RemoveAll(dir)
}
