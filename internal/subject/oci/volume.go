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
	w := s.env.Workload
	var err error
	if s.volumes, err = engine.OpenVolumes(s.env); err != nil {
		return err
	}
	if s.device, err = engine.FindDevice(w, s.flavour.name); err != nil {
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
	w := s.env.Workload
	spec.Root.Readonly = !engine.OwnRoot(w)
	m := specs.Mount{Destination: subject.VolumePath}
	switch folder := s.volumes.Folder(n); {
	case folder != "":
		m.Type, m.Source, m.Options = "bind", folder, []string{"rbind", "rprivate", "rw"}
	case w.Tmpfs > 0:
		m.Type, m.Source, m.Options = "tmpfs", "tmpfs", engine.TmpfsOptions(w)
	}
	if c := w.Cargo; c != nil {
		for _, wanted := range c.Mounts {
			source, destination, readOnly := wanted.Parts()
			options := []string{"rbind", "rprivate"}
			if readOnly {
				options = []string{"bind", "rprivate", "ro"} // mounts below it would stay writable
			}
			spec.Mounts = append(slices.Clone(spec.Mounts), specs.Mount{Destination: destination, Type: "bind", Source: source, Options: options})
		}
	}
	if m.Type != "" {
		spec.Mounts = append(slices.Clone(spec.Mounts), m)
	}
	if s.device.Node == "" {
		return
	}
	major, minor, mode, root := int64(s.device.Major), int64(s.device.Minor), os.FileMode(0o600), uint32(0)
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
