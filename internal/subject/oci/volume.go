package oci

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/thread"
)

// openStorage makes the root file systems and opens the workload's volume and device. All
// containers share a read-only root; if they write to it, each lane has its own.
func (s *session) openStorage() error {
	var err error
	if s.places, err = engine.OpenPlaces(s.env, s.flavour.name); err != nil {
		return err
	}
	return s.inMounts(func() error { return engine.MakeRoots(s.env) })
}

// inMounts calls do in the runtime's mount namespace.
func (s *session) inMounts(do func() error) error {
	if s.mounts == nil {
		return do()
	}
	return thread.InMounts(int(s.mounts.Fd()), do)
}

// store adds the workload's mounts and device to a bundle. The runtime makes the tmpfs and the
// device's node in the container's namespace.
func (s *session) store(spec *specs.Spec, n int) {
	place := s.places.On(n)
	spec.Root.Readonly = !engine.OwnRoot(s.env.Workload)
	// Not rbind for a read-only one: mounts below it would stay writable.
	spec.Mounts = slices.Concat(spec.Mounts, place.SpecMounts([]string{"rbind", "rprivate"}, []string{"bind", "rprivate", "ro"}))
	if place.Device.Node == "" {
		return
	}
	major, minor, mode, root := int64(place.Device.Major), int64(place.Device.Minor), os.FileMode(0o600), uint32(0)
	spec.Linux.Devices = append(spec.Linux.Devices, specs.LinuxDevice{Path: subject.DevicePath, Type: "b", Major: major, Minor: minor, FileMode: &mode, UID: &root, GID: &root})
	spec.Linux.Resources.Devices = append(spec.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Type: "b", Major: &major, Minor: &minor, Access: "rwm"})
}

// clear removes what a container wrote to its root file system, for the next one on the lane.
// These are its files, and the file in which gVisor stores them (since release 20230911:
// --overlay2=root:self).
func (s *session) clear(n int) error {
	if !engine.OwnRoot(s.env.Workload) {
		return nil
	}
	root := engine.Root(s.env, n)
	errs := []error{s.inMounts(func() error { return engine.ClearRoot(s.env, n) })}
	entries, err := os.ReadDir(root)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".gvisor.filestore.") {
			errs = append(errs, os.Remove(filepath.Join(root, e.Name())))
		}
	}
	return errors.Join(append(errs, err)...)
}
