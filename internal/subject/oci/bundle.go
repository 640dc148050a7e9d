package oci

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// bundle returns the spec of a container: the mounts, namespaces, capabilities and masked paths of
// `runc spec`, the run's limits, and the probe as the only process, without a terminal. Like `runc
// spec` it has no seccomp profile and no LSM label, which engines add.
func bundle(version, rootfs, cgroupsPath, id string, limits subject.Limits, unified bool) *specs.Spec {
	spec := &specs.Spec{
		Version:  version,
		Process:  process(probe.Name, id),
		Root:     &specs.Root{Path: rootfs, Readonly: true},
		Hostname: "tare",
		Mounts:   standardMounts,
		Linux: &specs.Linux{
			CgroupsPath: cgroupsPath,
			Resources:   engine.Resources(limits),
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.IPCNamespace},
				{Type: specs.UTSNamespace}, {Type: specs.MountNamespace},
			},
			MaskedPaths: []string{"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
				"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/sys/firmware", "/proc/scsi"},
			ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	}
	spec.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}
	if unified { // as runc spec does
		spec.Linux.Namespaces = append(spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
	return spec
}

// process returns a process without a terminal: the container's first, or a command in it.
func process(args ...string) *specs.Process {
	nofile := uint64(1024)
	return &specs.Process{
		Args:            args,
		Env:             []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Cwd:             "/",
		NoNewPrivileges: true,
		Capabilities:    &specs.LinuxCapabilities{Bounding: capabilities, Effective: capabilities, Permitted: capabilities},
		Rlimits:         []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Hard: nofile, Soft: nofile}},
	}
}

var capabilities = []string{"CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"}

// engineCapabilities are those of docker and containerd, which programs of images rely on.
var engineCapabilities = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID",
	"CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE"}

// setProgram makes the process that of a user's program.
func setProgram(p *specs.Process, c *cargo.Cargo) {
	p.Env, p.Cwd, p.User = c.Env, c.Dir, specs.User{UID: c.UID, GID: c.GID}
	p.NoNewPrivileges, p.Rlimits = false, nil
	p.Capabilities = &specs.LinuxCapabilities{Bounding: engineCapabilities}
	if c.UID == 0 {
		p.Capabilities.Effective, p.Capabilities.Permitted = engineCapabilities, engineCapabilities
	}
}

var standardMounts = []specs.Mount{
	{Destination: "/proc", Type: "proc", Source: "proc"},
	{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
	{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
	{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
	{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
	{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
	{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "relatime", "ro"}},
}

// writeBundle writes a bundle readable by its owner only: it has the variables of a user's program.
func writeBundle(dir string, spec *specs.Spec) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the bundle: %w", err)
	}
	b, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("make the bundle: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), b, 0o600); err != nil {
		return fmt.Errorf("make the bundle: %w", err)
	}
	return nil
}

// WriteBundle writes a bundle like those of the containers, with its root file system, for driving a
// runtime by hand. Its cgroup is below the run's.
func WriteBundle(dir, runID string, limits subject.Limits) error {
	root := filepath.Join(dir, "rootfs")
	if err := probe.Rootfs(root); err != nil {
		return err
	}
	group := "/" + filepath.Join(cgroup.Prefix+runID, filepath.Base(dir))
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	return writeBundle(dir, bundle(bundleSpec, root, group, "tare-"+runID, limits, cgroup.ModeOf(hs) == cgroup.V2))
}
