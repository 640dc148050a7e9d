package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/subject"
)

// checkVolume refuses a workload that wants two things at subject.VolumePath.
func checkVolume(w subject.Workload) error {
	if w.Tmpfs < 0 || w.Tmpfs > 0 && w.Volume != "" {
		return fmt.Errorf("a tmpfs of %d bytes and the volume %q: at %s there is one of them", w.Tmpfs, w.Volume, subject.VolumePath)
	}
	return nil
}

// onRoot tells whether a workload's files lie in its container's own root file
// system. One that carries no programs writes none.
func onRoot(w subject.Workload) bool {
	return len(w.Files) > 0 && w.Volume == "" && w.Tmpfs == 0 && w.Device == ""
}

// TmpfsOptions are those of a workload's tmpfs. The size and the mode are said,
// since they are the kernel's and the image's choice else.
func TmpfsOptions(w subject.Workload) []string {
	return []string{"nosuid", "nodev", "mode=1777", "size=" + strconv.FormatInt(w.Tmpfs, 10)}
}

// Device is a block device of the host.
type Device struct {
	Node         string // its path, no link; "" for no device
	Major, Minor uint32
}

// FindDevice looks for a workload's device, and whether it [Passes] to a runtime.
// Links to it ("/dev/disk/by-id/…") are followed: runtimes take none, and engines
// cut a path at its colons.
func FindDevice(w subject.Workload, runtimes ...string) (Device, error) {
	if w.Device == "" {
		return Device{}, nil
	}
	if !filepath.IsAbs(w.Device) {
		return Device{}, fmt.Errorf("the device %q: its path has to be absolute", w.Device)
	}
	node, err := filepath.EvalSymlinks(w.Device)
	if err != nil {
		return Device{}, fmt.Errorf("the device %q: %w", w.Device, err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(node, &st); err != nil {
		return Device{}, fmt.Errorf("the device %q: %w", w.Device, &os.PathError{Op: "stat", Path: node, Err: err})
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return Device{}, fmt.Errorf("the device %q is no block device: lsblk -p lists those that are", w.Device)
	}
	if strings.ContainsAny(node, ":,") {
		return Device{}, fmt.Errorf("the device %q: its path %q has a colon or a comma, at which tools and engines cut it", w.Device, node)
	}
	if err := Passes(w, runtimes...); err != nil {
		return Device{}, err
	}
	return Device{Node: node, Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev)}, nil
}

// Passes is the error of a workload with a device on a runtime whose containers
// cannot open it. runtimes are all by which that runtime may be known: names,
// paths, its shim, its own words.
//
// runc, crun and youki make the device's node and open the devices cgroup to it;
// Kata plugs it into its VM. gVisor's kernel has drivers of its own for the few
// devices that it knows: of any other it makes the node, which opens with ENXIO.
func Passes(w subject.Workload, runtimes ...string) error {
	i := slices.IndexFunc(runtimes, func(name string) bool { return isGVisor(filepath.Base(name)) })
	if w.Device == "" || i < 0 {
		return nil
	}
	return fmt.Errorf("the device %s in a sandbox of gVisor (%s): %w: its kernel has no drivers of block devices: the node would be there, and opening it fail with ENXIO; choose another runtime, or a volume",
		w.Device, runtimes[i], subject.ErrUnsupported)
}
