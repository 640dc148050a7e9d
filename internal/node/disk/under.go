package disk

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Under tells the file system that a folder lies on, and the block device below
// it, by the name that /proc/diskstats has for it; "" where there is none (NFS,
// tmpfs) or where it cannot be told. Of an overlay it is that of the upper
// folder, to which everything is written.
func Under(path string) (device, fsType string, err error) {
	m, err := mountOf(path)
	if err != nil {
		return "", "", fmt.Errorf("find the file system of %s: %w", path, err)
	}
	return deviceOf(m, 0), m.FSType, nil
}

// maxLayers bounds overlays upon overlays.
const maxLayers = 4

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
	// Btrfs and others that can have several devices give their files numbers that
	// are no device's; the mount's source is one of them.
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

// among says whether a device is one of several of a btrfs: then none of them
// tells of the whole.
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

// mountOf finds the mount of a path by the id that the kernel gives it (since
// 3.15, proc_pid_fdinfo(5)): of mounts on top of each other only one is right.
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
	f, err := os.Open(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "mnt_id:"); ok {
			return strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return 0, fmt.Errorf("the kernel tells no mount of an open file")
}

// Name is the name of a block device by its number, "" where there is none.
func Name(major, minor int) string {
	target, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", major, minor))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(filepath.Base(target), "!", "/") // cciss!c0d0
}

// NameOf is the name of the block device at a path.
func NameOf(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", fmt.Errorf("look at %s: %w", path, os.NewSyscallError("stat", err))
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", fmt.Errorf("%s is no block device", path)
	}
	if name := Name(int(unix.Major(st.Rdev)), int(unix.Minor(st.Rdev))); name != "" {
		return name, nil
	}
	return "", fmt.Errorf("the kernel knows no block device of %s's number", path)
}
