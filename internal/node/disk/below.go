package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Below returns the device that stores the data of a block device. For a loop device that
// is the device of its file, which the page cache may hide; else it is the device itself.
// If memory stores the data, memory describes how. An error means that it is unknown.
func Below(name string) (device, memory string, err error) { return below(name, 0) }

func below(name string, depth int) (device, memory string, err error) {
	switch {
	case depth > 2*maxLayers:
		return "", "", fmt.Errorf("%s is stacked on too many devices", name)
	case isMemory(name):
		return name, name + " is memory", nil
	}
	at, err := filepath.EvalSymlinks(Sysfs(name))
	if err != nil {
		return "", "", fmt.Errorf("find what %s lies on: %w", name, err)
	}
	if _, err := os.Stat(filepath.Join(at, "partition")); err == nil {
		at = filepath.Dir(at)
		whole := strings.ReplaceAll(filepath.Base(at), "!", "/")
		if device, memory, err = below(whole, depth+1); device == whole {
			device = name
		}
		return device, memory, err
	}
	if on, fsType, err := Backing(name); err != nil {
		return "", "", err
	} else if slices.Contains([]string{"tmpfs", "ramfs", "devtmpfs"}, fsType) {
		return name, name + " lies on a " + fsType, nil
	} else if fsType != "" && on == "" {
		return "", "", fmt.Errorf("%s lies on %s with an unknown device", name, fsType)
	} else if on != "" {
		device, memory, err = below(on, depth+1)
		if memory != "" {
			memory = name + " lies on " + on + ": " + memory
		}
		return device, memory, err
	}
	return stacked(name, at, depth)
}

// stacked returns the device below a device of device mapper or RAID. Such a device has
// counters itself. So the result differs from name only if it lies on a single loop device.
func stacked(name, at string, depth int) (device, memory string, err error) {
	slaves, _ := os.ReadDir(filepath.Join(at, "slaves"))
	answers := name
	for _, s := range slaves {
		slave := strings.ReplaceAll(s.Name(), "!", "/")
		device, why, err := below(slave, depth+1)
		if err != nil {
			return "", "", err
		}
		if why == "" {
			if len(slaves) == 1 && device != slave {
				answers = device
			}
			return answers, "", nil
		}
		memory = name + " lies on " + slave + ": " + why
	}
	return answers, memory, nil
}

// isMemory reports whether the driver of a device stores data in memory or not at all.
func isMemory(name string) bool {
	model, _ := os.ReadFile(filepath.Join(Sysfs(name), "device/model"))
	return numbered(name, "ram", "zram", "nullb") || strings.TrimSpace(string(model)) == "scsi_debug"
}

// numbered reports whether a name is that of one of the drivers, followed by a number.
func numbered(name string, drivers ...string) bool {
	return slices.ContainsFunc(drivers, func(driver string) bool {
		digits, ok := strings.CutPrefix(name, driver)
		return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
	})
}

// Sysfs returns the folder of a block device in sysfs.
func Sysfs(name string) string {
	return filepath.Join("/sys/class/block", strings.ReplaceAll(name, "/", "!"))
}

// Backing returns what a loop device lies on: a block device, or the file system of a file
// and its device. It returns nothing for other devices.
func Backing(name string) (device, fsType string, err error) {
	text, err := os.ReadFile(filepath.Join(Sysfs(name), "loop/backing_file"))
	if err != nil {
		return "", "", nil // not a loop device, or detached
	}
	// The kernel knows the device numbers. The path may belong to another mount
	// namespace or be removed.
	fd, err := unix.Open("/dev/"+name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		var info *unix.LoopInfo64
		if info, err = unix.IoctlLoopGetStatus64(fd); errors.Is(err, unix.ENXIO) {
			return "", "", nil // detached
		} else if err == nil && info.Rdevice != 0 {
			return Name(int(unix.Major(info.Rdevice)), int(unix.Minor(info.Rdevice))), "", nil
		} else if err == nil {
			return mountedBy(info.Device)
		}
	}
	path := strings.TrimSuffix(string(text), "\n")
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return "", "", fmt.Errorf("open /dev/%s: %w", name, err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFBLK {
		return Name(int(unix.Major(st.Rdev)), int(unix.Minor(st.Rdev))), "", nil
	}
	return Under(path)
}

// mountedBy returns the file system with a device number and the device below it.
func mountedBy(number uint64) (device, fsType string, err error) {
	major, minor := int(unix.Major(number)), int(unix.Minor(number))
	list, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		is := m.Major == major && m.Minor == minor
		return !is, is
	})
	if err != nil {
		return "", "", err
	}
	if len(list) == 0 {
		return Name(major, minor), "a file system that is not mounted here", nil
	}
	return deviceOf(list[0], 0), list[0].FSType, nil
}
