package volume

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/disk"
)

// device takes a block device that was named as one to be destroyed, if nobody
// uses it, and holds it until the volume is closed.
func (v *Volume) device(a Asked) error {
	path := v.Source
	if !slices.Contains(a.Destroys, path) {
		return notHere("--i-know-this-destroys "+path, "a job writes over everything on %s: that has to be allowed by name", path)
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

// Free says why the block device at a path cannot be written over, nil if
// nothing stands against it now. Nothing is written.
func Free(path string) error {
	c, err := claim(path)
	if err != nil {
		return err
	}
	return c.release()
}

// Check says why the volume's device must not be written now, nil where it may
// be, and where the volume is no device: another device answers at its path, or
// it has come into use. Nobody can mount it or put it into a RAID while it is
// held; a loop device, which claims nothing, can be laid on it. Descriptors of it
// are the targets' own by now, and are not looked at.
func (v *Volume) Check() error {
	if v.claim == nil {
		return nil
	}
	if err := v.claim.same(); err != nil {
		return err
	}
	return v.claim.unused(false)
}

// claimed is a block device that is held with O_EXCL: until it is released,
// nobody can mount it, put it into a RAID, a swap or a device mapper's, nor any
// partition of it (open(2)); each of those gets EBUSY. What opens it plainly, as
// fio, dd and containers do, is not kept from it. Its number is given to no
// other device meanwhile.
type claimed struct {
	fd   int
	path string // as it was asked for
	node string // the node itself, without links
	name string // in /proc/diskstats
	rdev uint64
	size int64 // bytes
}

// claim opens a device that nobody uses. The path is followed once: all else is
// asked of what was found there.
func claim(path string) (*claimed, error) {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, notHere("give the path of a block device, such as device=/dev/sdb", "open %s: %w", path, os.NewSyscallError("open", err))
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
		return nil, notHere("give a device that nobody uses and that can be written", "open %s for tare alone: %w", path, os.NewSyscallError("open", err))
	}
	if err := c.measure(); err != nil {
		unix.Close(c.fd)
		return nil, err
	}
	return c, nil
}

// identify finds out which device a descriptor is of.
func (c *claimed) identify(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", c.path, os.NewSyscallError("fstat", err))
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return notHere("give the path of a block device, such as device=/dev/sdb", "%s is no block device", c.path)
	}
	c.rdev = st.Rdev
	if c.name = disk.Name(int(unix.Major(st.Rdev)), int(unix.Minor(st.Rdev))); c.name == "" {
		return notHere("give the path of a block device that is there", "the kernel knows no block device of %s's number", c.path)
	}
	var err error
	if c.node, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil {
		return fmt.Errorf("find where %s leads: %w", c.path, err)
	}
	return c.same()
}

// measure asks an open device for its size, and whether it can be written: one
// that is read-only can be opened for writing all the same.
func (c *claimed) measure() error {
	var st unix.Stat_t
	if err := unix.Fstat(c.fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", c.path, os.NewSyscallError("fstat", err))
	}
	if st.Rdev != c.rdev {
		return notHere("see which device is which: lsblk -o NAME,MAJ:MIN,SERIAL", "%s became another device while it was opened", c.path)
	}
	if fixed, err := unix.IoctlGetInt(c.fd, unix.BLKROGET); err == nil && fixed != 0 {
		return notHere("give a device that nobody uses and that can be written", "%s is read-only", c.path)
	}
	var err error
	if c.size, err = unix.Seek(c.fd, 0, unix.SEEK_END); err != nil {
		return fmt.Errorf("ask for the size of %s: %w", c.path, os.NewSyscallError("lseek", err))
	}
	return nil
}

// same says whether the device is still what is found at its node.
func (c *claimed) same() error {
	var st unix.Stat_t
	if err := unix.Stat(c.node, &st); err != nil {
		return notHere("see what became of the device: lsblk", "%s is not there: %w", c.node, os.NewSyscallError("stat", err))
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK || st.Rdev != c.rdev {
		return notHere("see which device is which: lsblk -o NAME,MAJ:MIN,SERIAL", "%s is another device than the one that was given away (%d:%d), and is left alone", c.node, unix.Major(c.rdev), unix.Minor(c.rdev))
	}
	return nil
}

// unused says who uses the device, if anybody does.
func (c *claimed) unused(files bool) error {
	users, err := within(looking, func() ([]string, error) { return usersOf(c.name, files), nil })
	if err != nil {
		users = []string{fmt.Sprintf("who uses it could not be found out within %v", looking)}
	}
	if len(users) == 0 {
		return nil
	}
	const most = 8
	more := ""
	if len(users) > most {
		users, more = users[:most], fmt.Sprintf(" and %d more", len(users)-most)
	}
	return notHere("give a device that nobody uses", "%s is in use, and is left alone: %s%s", c.path, strings.Join(users, ", "), more)
}

func (c *claimed) release() error {
	if err := unix.Close(c.fd); err != nil {
		return fmt.Errorf("let go of %s: %w", c.path, os.NewSyscallError("close", err))
	}
	return nil
}
