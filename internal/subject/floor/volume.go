package floor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/thread"
	"github.com/tare-bench/tare/record"
)

// openStorage makes the root file systems and opens the workload's volume and device. All containers
// share one root; if they write to it, each lane has its own.
func (s *session) openStorage() error {
	w := s.env.Workload
	var err error
	if s.places, err = engine.OpenPlaces(s.env); err != nil {
		return err
	}
	if err := engine.MakeRoots(s.env); err != nil {
		return err
	}
	if len(w.Files) > 0 || w.Cargo != nil {
		for n := range s.env.Lanes {
			if err := makeNodes(engine.Root(s.env, n)); err != nil {
				return fmt.Errorf("make devices on lane %d: %w", n, err)
			}
		}
	}
	if device := s.places.All.Device; device.Node != "" {
		return makeNode(engine.Root(s.env, 0), device)
	}
	return nil
}

// makeNodes makes the devices that programs expect: without /dev/null a program creates a file
// of that name. /dev may be a link in a foreign root.
func makeNodes(at string) error {
	root, err := os.OpenRoot(at)
	if err != nil {
		return err
	}
	defer root.Close()
	dev, err := root.Open("dev")
	if err != nil {
		return err
	}
	defer dev.Close()
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9} { // Documentation/admin-guide/devices.txt
		err := unix.Mknodat(int(dev.Fd()), name, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor)))
		if err == nil {
			err = root.Chmod("dev/"+name, 0o666) // regardless of the umask
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// makeNode makes the device's node in a root file system. The floor joins no devices cgroup
// that could deny it.
func makeNode(root string, device engine.Device) error {
	path := filepath.Join(root, subject.DevicePath)
	if err := unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(device.Major, device.Minor))); err != nil {
		return fmt.Errorf("make the device's node %s: %w", path, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		return fmt.Errorf("statfs %s: %w", root, err)
	}
	if fs.Flags&unix.ST_NODEV != 0 {
		return fmt.Errorf("device %s: %w: the root file system in %s is mounted nodev: move tare's folders to another file system", device.Node, subject.ErrUnsupported, root)
	}
	return nil
}

// mountTmpfs mounts the workload's tmpfs in a container's mount namespace.
func (s *session) mountTmpfs(b *box) *record.Failure {
	size := s.env.Workload.Tmpfs
	if size == 0 {
		return nil
	}
	pidfd, err := unix.PidfdOpen(b.pid, 0)
	if err == nil {
		defer func() { _ = unix.Close(pidfd) }()
		err = thread.InMounts(pidfd, func() error {
			return unix.Mount("tmpfs", subject.VolumePath, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=1777,size=%d", size))
		})
	}
	if err != nil {
		return &record.Failure{Kind: record.FailError, Detail: fmt.Sprintf("mount a tmpfs of %d bytes at %s in the container: %v", size, subject.VolumePath, err)}
	}
	return nil
}

// clear removes what a container wrote to its root file system, for the next one on the lane.
func (s *session) clear(n int) error {
	err := engine.ClearRoot(s.env, n)
	if err == nil && s.env.Workload.Cargo != nil {
		err = makeNodes(engine.Root(s.env, n))
	}
	return err
}
