package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"

	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/term"
)

// looking limits the search for users: another process's file may be on a server that
// does not answer.
const looking = 20 * time.Second

// usersOf returns the users of a device and of devices that share its blocks. With
// files it also returns processes that have it open.
func usersOf(name string, files bool) []string {
	parts := sharing(name)
	users := slices.Concat(mountsOf(parts), swapsOf(parts), holdersOf(parts), loopsOn(parts))
	if files && len(users) == 0 {
		users = openAnywhere(parts)
	}
	return users
}

// sharing returns the devices that share blocks with a device, which are its partitions.
// For a loop device it adds the device below with its partitions, recursively. A loop
// device claims nothing below it (loop(4)), so that may be mounted.
func sharing(name string) []string {
	parts := partsOf(name)
	for i := 0; i < len(parts); i++ { // parts grows in the loop
		if below, fsType, _ := disk.Backing(parts[i]); below != "" && fsType == "" {
			for _, p := range partsOf(below) {
				if !slices.Contains(parts, p) {
					parts = append(parts, p)
				}
			}
		}
	}
	return parts
}

// partsOf returns a device, its partitions, and its disk if it is a partition.
func partsOf(name string) []string {
	parts := []string{name}
	at, err := filepath.EvalSymlinks(disk.Sysfs(name))
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

// mountsOf returns the mounts of devices in this mount namespace. O_EXCL detects those
// in other namespaces.
func mountsOf(parts []string) []string {
	list, err := mountinfo.GetMounts(nil)
	if err != nil {
		return []string{"the mounts could not be read: " + err.Error()}
	}
	var users []string
	for _, m := range list {
		by := disk.Name(m.Major, m.Minor)
		if by == "" && strings.HasPrefix(m.Source, "/dev/") {
			by, _ = disk.NameOf(m.Source)
		}
		if slices.Contains(parts, by) {
			users = append(users, "mounted on "+term.Clean(m.Mountpoint))
		}
	}
	return users
}

func swapsOf(parts []string) []string {
	swaps, err := os.ReadFile("/proc/swaps")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return []string{"the swap could not be read: " + err.Error()}
	}
	var users []string
	for line := range strings.Lines(string(swaps)) {
		source, _, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(source, "/dev/") {
			continue // a file on a mounted file system
		}
		if by, err := disk.NameOf(source); err == nil && slices.Contains(parts, by) {
			users = append(users, "swap")
		}
	}
	return users
}

// holdersOf returns RAIDs and mapped devices that the kernel lists as holders.
func holdersOf(parts []string) []string {
	var users []string
	for _, part := range parts {
		holders, _ := os.ReadDir(filepath.Join(disk.Sysfs(part), "holders"))
		for _, h := range holders {
			users = append(users, "part of "+h.Name())
		}
	}
	return users
}

// loopsOn returns the loop devices on top of devices. They are not holders, and O_EXCL
// does not fail because of them.
func loopsOn(parts []string) []string {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return []string{"the loop devices could not be read: " + err.Error()}
	}
	var users []string
	for _, file := range files {
		loop := filepath.Base(filepath.Dir(filepath.Dir(file)))
		if slices.Contains(parts, loop) {
			continue // the device in question
		}
		below, fsType, err := disk.Backing(loop)
		switch {
		case err != nil:
			users = append(users, fmt.Sprintf("the storage below /dev/%s could not be determined: %v", loop, err))
		case fsType == "" && slices.Contains(parts, below):
			users = append(users, strings.Join(append([]string{"below the loop device /dev/" + loop}, mountsOf(partsOf(loop))...), ", which is "))
		}
	}
	return users
}
