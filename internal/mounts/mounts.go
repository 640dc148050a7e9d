// Package mounts finds and detaches what is mounted below a folder that a run
// made: gVisor keeps a network namespace there, for instance.
package mounts

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Below lists the mount points at and below a folder, outermost first.
func Below(dir string) ([]string, error) {
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

// Detach unmounts everything at and below a folder, innermost first.
func Detach(dir string) error {
	points, err := Below(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range slices.Backward(points) {
		if err := unix.Unmount(p, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", p, err))
		}
	}
	return errors.Join(errs...)
}
