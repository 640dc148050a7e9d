package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Under returns the file system of a folder and the block device below it, by its name in
// /proc/diskstats. The device is "" if there is none (NFS, tmpfs) or it is unknown. For an
// overlay it is the device of the upper folder, which takes all writes.
func Under(path string) (device, fsType string, err error) {
	m, err := mountOf(path)
	if err != nil {
		return "", "", fmt.Errorf("find the file system of %s: %w", path, err)
	}
	return deviceOf(m, 0), m.FSType, nil
}

const maxLayers = 4 // of overlays on overlays

func deviceOf(m *mountinfo.Info, depth int) string {
	if m.FSType == "overlay" && depth < maxLayers {
		for option := range strings.SplitSeq(m.VFSOptions, ",") {
			upper, ok := strings.CutPrefix(option, "upperdir=")
			if !ok || !filepath.IsAbs(upper) {
				continue
			}
			if below, err := mountOf(upper); err == nil {
				return deviceOf(below, depth+1)
			}
		}
		return ""
	}
	if name := Name(m.Major, m.Minor); name != "" {
		return name
	}
	// File systems with several devices, such as btrfs, have a device number of their
	// own. The source of the mount is one of the devices.
	if strings.HasPrefix(m.Source, "/dev/") {
		if name, err := NameOf(m.Source); err == nil && (m.FSType != "btrfs" || !among(btrfsFolder, name)) {
			return name
		}
	}
	return ""
}

// btrfsFolder has a folder for each mounted btrfs with links to its devices in
// "devices" (Documentation/ABI/testing/sysfs-fs-btrfs), by the kernel's names.
const btrfsFolder = "/sys/fs/btrfs"

// among reports whether a device is one of several of a btrfs.
func among(folder, name string) bool {
	links, err := filepath.Glob(filepath.Join(folder, "*", "devices", strings.ReplaceAll(name, "/", "!")))
	if err != nil {
		return false
	}
	for _, link := range links {
		if all, err := os.ReadDir(filepath.Dir(link)); err == nil && len(all) > 1 {
			return true
		}
	}
	return false
}

// mountOf finds the mount of a path by the kernel's id (since Linux 3.15,
// proc_pid_fdinfo(5)), because several mounts can cover each other.
func mountOf(path string) (*mountinfo.Info, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open", err)
	}
	defer unix.Close(fd)
	id, err := mountID(fd)
	if err != nil {
		return nil, err
	}
	list, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return m.ID != id, m.ID == id })
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("mount %d is not in the kernel's list", id)
	}
	return list[0], nil
}

func mountID(fd int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return 0, err
	}
	_, value, _ := strings.Cut(string(text), "mnt_id:")
	value, _, _ = strings.Cut(value, "\n")
	return strconv.Atoi(strings.TrimSpace(value))
}

// Name returns the name of a block device by its number, or "".
func Name(major, minor int) string { return nameOfNumber(fmt.Sprintf("%d:%d", major, minor)) }

func nameOfNumber(number string) string {
	target, err := os.Readlink("/sys/dev/block/" + number)
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(filepath.Base(target), "!", "/") // cciss!c0d0
}

// NameOf returns the name of the block device at a path.
func NameOf(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", fmt.Errorf("look at %s: %w", path, os.NewSyscallError("stat", err))
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", fmt.Errorf("%s is not a block device", path)
	}
	if name := Name(int(unix.Major(st.Rdev)), int(unix.Minor(st.Rdev))); name != "" {
		return name, nil
	}
	return "", fmt.Errorf("the kernel has no block device with the number of %s", path)
}
