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

// onRoot reports whether a workload writes to its container's root file system. A workload
// without programs writes nothing.
func onRoot(w subject.Workload) bool {
	return len(w.Files) > 0 && w.Volume == "" && w.Tmpfs == 0 && w.Device == ""
}

// TmpfsOptions returns the mount options of a workload's tmpfs. Size and mode are explicit:
// their defaults depend on the kernel and the image.
func TmpfsOptions(w subject.Workload) []string {
	return []string{"nosuid", "nodev", "mode=1777", "size=" + strconv.FormatInt(w.Tmpfs, 10)}
}

// Device is a block device of the host.
type Device struct {
	Node         string // its path without links; "" for no device
	Major, Minor uint32
}

// FindDevice returns a workload's device and checks that it [Passes] to a runtime. It follows
// links ("/dev/disk/by-id/…"): runtimes accept none, and engines split a path at its colons.
func FindDevice(w subject.Workload, runtimes ...string) (Device, error) {
	if w.Device == "" {
		return Device{}, nil
	}
	if !filepath.IsAbs(w.Device) {
		return Device{}, fmt.Errorf("device %q: need an absolute path", w.Device)
	}
	node, err := filepath.EvalSymlinks(w.Device)
	if err != nil {
		return Device{}, fmt.Errorf("device %q: %w", w.Device, err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(node, &st); err != nil {
		return Device{}, fmt.Errorf("device %q: %w", w.Device, &os.PathError{Op: "stat", Path: node, Err: err})
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return Device{}, fmt.Errorf("device %q is not a block device: see lsblk -p", w.Device)
	}
	if strings.ContainsAny(node, ":,") {
		return Device{}, fmt.Errorf("device %q: its path %q has a colon or a comma, which engines do not accept", w.Device, node)
	}
	if err := Passes(w, runtimes...); err != nil {
		return Device{}, err
	}
	return Device{Node: node, Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev)}, nil
}

// Passes returns the error of a workload with a device on a runtime whose containers cannot
// open it. runtimes are all names of that runtime: names, paths, its shim.
//
// runc, crun and youki make the device's node and allow it in the devices cgroup; Kata plugs
// the device into its VM. gVisor's kernel has drivers for a few devices only: for others it
// makes the node, and opening it fails with ENXIO.
func Passes(w subject.Workload, runtimes ...string) error {
	i := slices.IndexFunc(runtimes, func(name string) bool { return isGVisor(filepath.Base(name)) })
	if w.Device == "" || i < 0 {
		return nil
	}
	return fmt.Errorf("device %s on gVisor (%s): %w: gVisor has no block device drivers, so opening it fails with ENXIO; choose another runtime, or a volume",
		w.Device, runtimes[i], subject.ErrUnsupported)
}
