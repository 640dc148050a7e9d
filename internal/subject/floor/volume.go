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

// openStorage makes the root file systems and what else the workload stores its
// files on. All containers share one root file system; where their files are to
// lie in it, each lane has its own.
func (s *session) openStorage() error {
	w := s.env.Workload
	var err error
	if s.volumes, err = engine.OpenVolumes(s.env); err != nil {
		return err
	}
	device, err := engine.FindDevice(w)
	if err != nil {
		return err
	}
	if err := engine.MakeRoots(s.env); err != nil {
		return err
	}
	if len(w.Files) > 0 || w.Cargo != nil {
		if err := s.makeCommonNodes(); err != nil {
			return err
		}
	}
	if device.Node == "" {
		return nil
	}
	return makeNode(s.root(0), device)
}

// makeCommonNodes makes the devices that programs expect: without /dev/null a
// program that throws its output away writes it to a file of that name.
func (s *session) makeCommonNodes() error {
	for n := range s.env.Lanes {
		if err := makeNodes(s.root(n)); err != nil {
			return fmt.Errorf("make devices on lane %d: %w", n, err)
		}
	}
	return nil
}

// makeNodes makes them in a root file system, in which a link may stand for /dev.
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
		if err := unix.Mknodat(int(dev.Fd()), name, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))); err != nil {
			if errors.Is(err, os.ErrExist) {
				continue
			}
			return err
		}
		if err := root.Chmod("dev/"+name, 0o666); err != nil { // whatever the umask
			return err
		}
	}
	return nil
}

// root is a lane's root file system.
func (s *session) root(n int) string { return engine.Root(s.env, n) }

// makeNode makes the device's node in a root file system. No devices cgroup
// stands in its way: the floor joins none.
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
		return fmt.Errorf("the device %s: %w: the root file system lies in %s, which is mounted nodev; put tare's folders on another one", device.Node, subject.ErrUnsupported, root)
	}
	return nil
}

// mountTmpfs puts the workload's tmpfs into a container that was made. The
// kernel's call is made in the container's own mount namespace, with which it goes.
func (s *session) mountTmpfs(b *box) *record.Failure {
	size := s.env.Workload.Tmpfs
	if size == 0 {
		return nil
	}
	err := s.inNamespaces(b, func() error {
		return unix.Mount("tmpfs", subject.VolumePath, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=1777,size=%d", size))
	})
	if err != nil {
		return &record.Failure{Kind: record.FailError, Detail: fmt.Sprintf("mount a tmpfs of %d bytes at %s in the container: %v", size, subject.VolumePath, err)}
	}
	return nil
}

// inNamespaces does something in the container's mount namespace.
func (s *session) inNamespaces(b *box, do func() error) error {
	pidfd, err := unix.PidfdOpen(b.pid, 0)
	if err != nil {
		return fmt.Errorf("pidfd_open(%d): %w", b.pid, err)
	}
	defer func() { _ = unix.Close(pidfd) }()
	return thread.InMounts(pidfd, do)
}

// clear takes away what a container left on its root file system, so that the
// next one on the lane has a fresh one.
func (s *session) clear(n int) error {
	err := engine.ClearRoot(s.env, n)
	if err == nil && s.env.Workload.Cargo != nil {
		err = makeNodes(s.root(n))
	}
	return err
}
