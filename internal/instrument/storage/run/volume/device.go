package volume

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/disk"
)

// device claims a block device that the user allowed to overwrite, if it is unused. It
// holds the device until the volume is closed.
func (v *Volume) device(a Asked) error {
	path := v.Source
	if !slices.Contains(a.Destroys, path) {
		return notHere("--i-know-this-destroys "+path, "a job overwrites everything on %s: allow it by name", path)
	}
	c, err := claim(path)
	if err != nil {
		return err
	}
	v.claim, v.letGo = c, append(v.letGo, c.release)
	if c.size < a.Bytes {
		return notHere("use a smaller --size or --scale, or a larger device", "%s has %d MiB, and the jobs need %d MiB", path, c.size>>20, a.Bytes>>20)
	}
	v.On = lyingOn(c.name, "")
	v.Workload.Device, v.OwnOn, v.Size = c.node, v.On, c.size
	return nil
}

// Free returns why the block device at a path cannot be overwritten now, or nil.
// Nothing is written.
func Free(path string) error {
	c, err := claim(path)
	if err != nil {
		return err
	}
	return c.release()
}

// Check returns why the volume's device must not be written now, or nil. The path may
// lead to another device, or the device may be in use. While held, it
// cannot be mounted or added to a RAID. A loop device on top of it is possible, since that
// claims nothing. Open descriptors are those of the targets, so they are not checked.
func (v *Volume) Check() error {
	if v.claim == nil {
		return nil
	}
	if err := v.claim.same(); err != nil {
		return err
	}
	return v.claim.unused(false)
}

// claimed is a block device held with O_EXCL. Until its release, it and its
// partitions cannot be mounted or added to a RAID, swap or device mapper: these get EBUSY
// (open(2)).
// A plain open, as by fio, dd and containers, still works. The kernel does not reuse
// the device number in this time.
type claimed struct {
	fd   int
	path string // as requested
	node string // without symbolic links
	name string // name in /proc/diskstats
	rdev uint64
	size int64 // bytes
}

// claim opens an unused device. It resolves the path once, and all checks use the
// result.
func claim(path string) (*claimed, error) {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, notHere("use the path of a block device, such as device=/dev/sdb", "open %s: %w", path, os.NewSyscallError("open", err))
	}
	defer unix.Close(at)
	c := &claimed{fd: -1, path: path}
	if err := c.identify(at); err != nil {
		return nil, err
	}
	if err := c.unused(true); err != nil {
		return nil, err
	}
	c.fd, err = unix.Open(fmt.Sprintf("/proc/self/fd/%d", at), unix.O_RDWR|unix.O_EXCL|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, notHere("use a writable device that is not in use", "open %s for tare alone: %w", path, os.NewSyscallError("open", err))
	}
	if err := c.measure(); err != nil {
		unix.Close(c.fd)
		return nil, err
	}
	return c, nil
}

// identify determines the device of a descriptor.
func (c *claimed) identify(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("stat %s: %w", c.path, os.NewSyscallError("fstat", err))
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return notHere("use the path of a block device, such as device=/dev/sdb", "%s is no block device", c.path)
	}
	c.rdev = st.Rdev
	if c.name = disk.Name(int(unix.Major(st.Rdev)), int(unix.Minor(st.Rdev))); c.name == "" {
		return notHere("use the path of an existing block device", "the kernel knows no block device of %s's number", c.path)
	}
	var err error
	if c.node, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil {
		return fmt.Errorf("resolve %s: %w", c.path, err)
	}
	return c.same()
}

// measure reads the size of an open device and whether it is writable. A read-only
// device can be opened for writing, too.
func (c *claimed) measure() error {
	var st unix.Stat_t
	if err := unix.Fstat(c.fd, &st); err != nil {
		return fmt.Errorf("stat %s: %w", c.path, os.NewSyscallError("fstat", err))
	}
	if st.Rdev != c.rdev {
		return notHere("identify the devices: lsblk -o NAME,MAJ:MIN,SERIAL", "%s became another device while it was opened", c.path)
	}
	if fixed, err := unix.IoctlGetInt(c.fd, unix.BLKROGET); err == nil && fixed != 0 {
		return notHere("use a writable device that is not in use", "%s is read-only", c.path)
	}
	var err error
	if c.size, err = unix.Seek(c.fd, 0, unix.SEEK_END); err != nil {
		return fmt.Errorf("get the size of %s: %w", c.path, os.NewSyscallError("lseek", err))
	}
	return nil
}

// same returns an error if another device is at the node now.
func (c *claimed) same() error {
	var st unix.Stat_t
	if err := unix.Stat(c.node, &st); err != nil {
		return notHere("check the device: lsblk", "%s is not there: %w", c.node, os.NewSyscallError("stat", err))
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK || st.Rdev != c.rdev {
		return notHere("identify the devices: lsblk -o NAME,MAJ:MIN,SERIAL", "%s is not the allowed device (%d:%d), so it is not used", c.node, unix.Major(c.rdev), unix.Minor(c.rdev))
	}
	return nil
}

// unused returns an error with the users of the device, or nil if there are none.
func (c *claimed) unused(files bool) error {
	users, err := within(looking, func() ([]string, error) { return usersOf(c.name, files), nil })
	if err != nil {
		users = []string{fmt.Sprintf("its users could not be determined within %v", looking)}
	}
	if len(users) == 0 {
		return nil
	}
	const most = 8
	more := ""
	if len(users) > most {
		users, more = users[:most], fmt.Sprintf(" and %d more", len(users)-most)
	}
	return notHere("use a device that is not in use", "%s is in use: %s%s", c.path, strings.Join(users, ", "), more)
}

func (c *claimed) release() error {
	if err := unix.Close(c.fd); err != nil {
		return fmt.Errorf("release %s: %w", c.path, os.NewSyscallError("close", err))
	}
	return nil
}
