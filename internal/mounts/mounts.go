// Package mounts finds and detaches what is mounted below a folder that a run
// made: gVisor keeps a network namespace there, for instance. And it removes
// such folders, never through a mount.
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

// Below lists the mount points at and below a folder, outermost first. A folder
// that does not exist has none, and neither has a link: what it leads to is elsewhere.
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

// patience bounds how often the list is read again while others mount.
const patience = 100

// whole reads the list of mounts. The kernel hands it out a page at a time, and what
// others mount or unmount between two of them can take a line away that stands in
// neither; it tells by poll(2) that the list changed since it was last asked, see
// mounts_poll in fs/proc_namespace.c. A machine that never rests gets all that was
// seen: to detach what is gone already does no harm.
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

// resolved is a path as the kernel's list has it: without links on the way. The
// last element stays what it is, a link too.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// RemoveTree detaches everything mounted at and below a folder, innermost
// first, and removes the folder. If something is still mounted there, nothing
// is removed. A folder that does not exist is no error. Of a link, or a file, only
// that itself is removed.
func RemoveTree(dir string) error {
	points, err := Below(dir)
	if err != nil {
		return err
	}
	for _, p := range slices.Backward(points) {
		err := unix.Unmount(p, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // no mount any more
			return fmt.Errorf("unmount %s: %w", p, err)
		}
	}
	// A mount may have been under another one.
	if left, err := Below(dir); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not removed: still mounted below it: %s", dir, strings.Join(left, ", ")))
	}
	return os.RemoveAll(dir)
}
