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

// looking bounds the search for users: a file of another's may be on a server
// that does not answer.
const looking = 20 * time.Second

// usersOf lists who uses a device or what shares its blocks, and with files who
// has it open.
func usersOf(name string, files bool) []string {
	parts := sharing(name)
	users := slices.Concat(mountsOf(parts), swapsOf(parts), holdersOf(parts), loopsOn(parts))
	if files && len(users) == 0 {
		users = openAnywhere(parts)
	}
	return users
}

// sharing are the devices that share blocks with one: its parts, and where it is
// a loop device on another device, that and its parts, and so on. A loop device
// claims nothing of what it lies on (loop(4)), which may be mounted.
func sharing(name string) []string {
	parts := partsOf(name)
	for i := 0; i < len(parts); i++ { // which grows
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

// partsOf are a device, its partitions, and the disk that it is one of.
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

// mountsOf are the mounts of devices that can be seen from here. Those of other
// mount namespaces show by O_EXCL.
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
			continue // a file, which is on something that is mounted
		}
		if by, err := disk.NameOf(source); err == nil && slices.Contains(parts, by) {
			users = append(users, "swap")
		}
	}
	return users
}

// holdersOf are RAIDs and mapped devices, which the kernel knows to lie on others.
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

// loopsOn are loop devices that lie on devices. They are no holders, and O_EXCL
// does not fail for them.
func loopsOn(parts []string) []string {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return []string{"the loop devices could not be read: " + err.Error()}
	}
	var users []string
	for _, file := range files {
		loop := filepath.Base(filepath.Dir(filepath.Dir(file)))
		if slices.Contains(parts, loop) {
			continue // it is what was asked about
		}
		below, fsType, err := disk.Backing(loop)
		switch {
		case err != nil:
			users = append(users, fmt.Sprintf("what /dev/%s lies on could not be found out: %v", loop, err))
		case fsType == "" && slices.Contains(parts, below):
			users = append(users, strings.Join(append([]string{"below the loop device /dev/" + loop}, mountsOf(partsOf(loop))...), ", which is "))
		}
	}
	return users
}
