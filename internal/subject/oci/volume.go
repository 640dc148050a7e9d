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

// openStorage makes the root file systems and looks for what else the workload
// stores its files on. All containers share one root file system, which they
// cannot write to; where their files are to lie in it, each lane has its own.
func (s *session) openStorage() error {
	w := s.env.Workload
	var err error
	if s.volumes, err = engine.OpenVolumes(s.env); err != nil {
		return err
	}
	if s.device, err = engine.FindDevice(w, s.flavour.name); err != nil {
		return err
	}
	return s.amongMounts(func() error { return engine.MakeRoots(s.env) })
}

// amongMounts does something where what it mounts is there for the runtime.
func (s *session) amongMounts(do func() error) error {
	if s.mounts == nil {
		return do()
	}
	return thread.InMounts(int(s.mounts.Fd()), do)
}

// root is a lane's root file system.
func (s *session) root(n int) string { return engine.Root(s.env, n) }

// store puts what the workload stores its files on into a bundle. The runtime
// makes the tmpfs and the device's node, in the container's own namespace.
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
				options = []string{"bind", "rprivate", "ro"} // without what is mounted below it, which would stay writable
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

// clear takes away what a container left on its root file system, so that the
// next one on the lane has a fresh one: its files, and the file that gVisor keeps
// beside them for what was written (release 20230911 on: --overlay2=root:self).
func (s *session) clear(n int) error {
	if !engine.OwnRoot(s.env.Workload) {
		return nil
	}
	root := s.root(n)
	errs := []error{s.amongMounts(func() error { return engine.ClearRoot(s.env, n) })}
	entries, err := os.ReadDir(root)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".gvisor.filestore.") {
			errs = append(errs, os.Remove(filepath.Join(root, e.Name())))
		}
	}
	return errors.Join(append(errs, err)...)
}
