package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/meter/disk"
)

// device takes a block device that was named as one to be destroyed, if nobody
// uses it.
func (v *Volume) device(a Asked) error {
	path := v.Source
	if !slices.Contains(a.Destroys, path) {
		return notHere("--i-know-this-destroys "+path, "a job writes over everything on %s: that has to be allowed by name", path)
	}
	name, size, err := free(path)
	if err != nil {
		return err
	}
	if size < a.Bytes {
		return notHere("use a smaller --size or --scale, or a larger device", "%s has %d MiB, and the jobs need %d MiB", path, size>>20, a.Bytes>>20)
	}
	v.Workload.Device, v.Device, v.OwnDevice = path, name, name
	return nil
}

// Free says why the block device at a path cannot be written over, nil if
// nothing stands against it now. Nothing is written.
func Free(path string) error {
	_, _, err := free(path)
	return err
}

// free is the name of a device that nobody uses, and its size in bytes.
func free(path string) (name string, size int64, err error) {
	if name, err = disk.NameOf(path); err != nil {
		return "", 0, notHere("give the path of a block device, such as device=/dev/sdb", "%w", err)
	}
	if users := usersOf(path, name); len(users) > 0 {
		return "", 0, notHere("give a device that nobody uses", "%s is in use, and is left alone: %s", path, strings.Join(users, ", "))
	}
	// O_EXCL on a block device fails while the kernel has it claimed: mounted,
	// in a RAID, a swap, a device mapper's (open(2)).
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_EXCL|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", 0, notHere("give a device that nobody uses and that can be written", "open %s for tare alone: %w", path, os.NewSyscallError("open", err))
	}
	defer unix.Close(fd)
	// A device that is read-only can be opened for writing all the same.
	if fixed, err := unix.IoctlGetInt(fd, unix.BLKROGET); err == nil && fixed != 0 {
		return "", 0, notHere("give a device that nobody uses and that can be written", "%s is read-only", path)
	}
	if size, err = unix.Seek(fd, 0, unix.SEEK_END); err != nil {
		return "", 0, fmt.Errorf("ask for the size of %s: %w", path, os.NewSyscallError("lseek", err))
	}
	return name, size, nil
}

// usersOf lists who uses a device or a part of it.
func usersOf(path, name string) []string {
	parts := partsOf(name)
	var users []string
	list, err := mountinfo.GetMounts(nil)
	if err != nil {
		users = append(users, "the mounts could not be read: "+err.Error())
	}
	for _, m := range list {
		by := disk.Name(m.Major, m.Minor)
		if by == "" && strings.HasPrefix(m.Source, "/dev/") {
			by, _ = disk.NameOf(m.Source)
		}
		if slices.Contains(parts, by) {
			users = append(users, "mounted on "+m.Mountpoint)
		}
	}
	swaps, err := os.ReadFile("/proc/swaps")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		users = append(users, "the swap could not be read: "+err.Error())
	}
	for line := range strings.Lines(string(swaps)) {
		source, _, _ := strings.Cut(line, " ")
		by, err := disk.NameOf(source)
		if source == path || err == nil && slices.Contains(parts, by) {
			users = append(users, "swap")
		}
	}
	for _, part := range parts {
		holders, _ := os.ReadDir(filepath.Join("/sys/class/block", strings.ReplaceAll(part, "/", "!"), "holders"))
		for _, h := range holders {
			users = append(users, "part of "+h.Name())
		}
	}
	return users
}

// partsOf are a device, its partitions, and the disk that it is one of.
func partsOf(name string) []string {
	parts := []string{name}
	at, err := filepath.EvalSymlinks(filepath.Join("/sys/class/block", strings.ReplaceAll(name, "/", "!")))
	if err != nil {
		return parts
	}
	entries, _ := os.ReadDir(at)
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(at, e.Name(), "partition")); err == nil {
			parts = append(parts, strings.ReplaceAll(e.Name(), "!", "/"))
		}
	}
	if _, err := os.Stat(filepath.Join(at, "partition")); err == nil {
		parts = append(parts, strings.ReplaceAll(filepath.Base(filepath.Dir(at)), "!", "/"))
	}
	return parts
}
