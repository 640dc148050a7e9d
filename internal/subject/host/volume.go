package host

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// openStorage makes the host's counterparts of subject.VolumePath and subject.DevicePath.
// Mounts are below the run's folder, and Close or tare clean unmounts them with it.
func (s *session) openStorage() error {
	var err error
	if s.places, err = engine.OpenPlaces(s.env); err != nil || s.places.Volumes != nil {
		return err
	}
	for n := range s.env.Lanes {
		if err := s.make(n); err != nil {
			return err
		}
	}
	return nil
}

// folder returns a lane's counterpart of subject.VolumePath: a folder of the volume, a tmpfs,
// or a folder of the run.
func (s *session) folder(n int) string {
	return cmp.Or(s.places.Folder(n), filepath.Join(s.env.Dir, "volume", strconv.Itoa(n)))
}

// make makes a lane's folder, and mounts the tmpfs on it.
func (s *session) make(n int) error {
	path, size := s.folder(n), s.env.Workload.Tmpfs
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("make the folder of lane %d: %w", n, err)
	}
	if size == 0 {
		return nil
	}
	err := unix.Mount("tare-"+s.env.RunID, path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=0700,size=%d", size)) // closed to others, who could make links
	if errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("%w: %w: run tare as root (sudo tare …)", err, subject.ErrUnsupported)
	}
	if err != nil {
		return fmt.Errorf("mount a tmpfs of %d bytes on %s: %w", size, path, err)
	}
	return nil
}

// clear removes what a workload left in its folder, as the end of a container does. Files on
// the volume stay.
func (s *session) clear(n int) error {
	if s.places.Volumes != nil {
		return nil
	}
	if left, err := os.ReadDir(s.folder(n)); err == nil && len(left) == 0 {
		return nil
	}
	if err := mounts.RemoveTree(s.folder(n)); err != nil {
		return err
	}
	return s.make(n)
}
