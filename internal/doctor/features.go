package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

var features = []facility{
	{AreaKernel, "Linux", (*subject).linux},
	{AreaKernel, "cgroups", (*subject).cgroups},
	{AreaKernel, "namespaces", (*subject).namespaces},
	{AreaKernel, "overlayfs", (*subject).overlay},
	{AreaKernel, "KVM", (*subject).kvm},
	{AreaKernel, "vhost-vsock", (*subject).vsock},
	{AreaKernel, "pressure (PSI)", (*subject).pressure},
	{AreaKernel, "BPF", (*subject).bpf},
	{AreaKernel, "BPF statistics", (*subject).bpfStatistics},
	{AreaKernel, "perf events", (*subject).perf},
}

func (s *subject) linux(c *Check) {
	if c.Version = s.root.Kernel(); c.Version == "" {
		c.is(Limited, "its release could not be read from /proc/sys/kernel/osrelease", "")
	}
}

// neededControllers are the controllers of the limits that every container of a run has.
var neededControllers = []string{"cpu", "memory", "pids"}

func (s *subject) cgroups(c *Check) {
	groups, err := s.root.Cgroups()
	if err != nil {
		c.unread(err)
		return
	}
	c.Version = groups.Mode()
	var lacking []string
	for _, controller := range neededControllers {
		if _, ok := groups.Find(controller); !ok {
			lacking = append(lacking, controller)
		}
	}
	switch {
	case groups.Mode() == machine.ModeNone:
		c.is(Missing, "no cgroups are mounted, so runtimes cannot limit or account containers", "mount -t cgroup2 cgroup2 /sys/fs/cgroup")
	case len(lacking) > 0:
		c.is(Limited, "no controller for "+strings.Join(lacking, ", ")+": runtimes refuse such limits or ignore them", "")
	case groups.Mode() == machine.ModeHybrid:
		c.Why = "v1 and v2 are both mounted; crun needs a private mount namespace with v1 only, which tare creates"
	default:
		c.Why = "cpu, memory and pids can be limited and accounted"
	}
}

// namespaceKinds are the namespaces that containers need, with the status if one is
// missing.
var namespaceKinds = []struct {
	name string
	lack Status
}{
	{"mnt", Missing}, {"pid", Missing}, {"net", Missing}, {"ipc", Missing}, {"uts", Missing},
	{"cgroup", Limited}, // Linux 4.6
	{"time", Limited},   // Linux 5.6
}

func (s *subject) namespaces(c *Check) {
	var have, lack []string
	for _, ns := range namespaceKinds {
		if s.root.Exists("/proc/self/ns/" + ns.name) {
			have = append(have, ns.name)
			continue
		}
		lack = append(lack, ns.name)
		if c.Status != Missing {
			c.Status = ns.lack
		}
	}
	c.Version = fmt.Sprintf("%d of %d", len(have), len(namespaceKinds))
	c.Why = "used by containers and the floor: " + strings.Join(have, ", ")
	if len(lack) > 0 {
		c.Why = "this kernel lacks " + strings.Join(lack, ", ") + "; cgroup came with Linux 4.6, time with 5.6"
	}
}

func (s *subject) overlay(c *Check) {
	if s.hasFileSystem("overlay") {
		c.Why = "used to stack image layers"
		return
	}
	s.lacksModule(c, Missing, "not in /proc/filesystems: engines copy image layers instead, which makes every create slower", "overlay", "CONFIG_OVERLAY_FS")
}

// lacksModule reports a missing feature that a module of the kernel may have.
func (s *subject) lacksModule(c *Check, status Status, why, module, option string) {
	c.is(status, why, "modprobe "+module)
	if without := s.builtWithout(option); without != "" || !s.root.Exists("/proc/modules") {
		c.is(status, why+"; "+cmp.Or(without, "this kernel has no modules to load"), "")
	}
}

func (s *subject) pressure(c *Check) {
	c.Why = "pressure stall information: how long tasks waited for CPU, memory and disk during a run"
	if _, err := s.root.FirstLine("/proc/pressure/cpu", 1024); err == nil {
		return
	}
	without := s.builtWithout("CONFIG_PSI")
	c.is(Missing, c.Why+"; "+cmp.Or(without, "this kernel is older than 4.20, was built without it, or was started without psi=1"), "")
	if without == "" && s.root.Exists("/etc/default/grub") {
		c.Fix = `sed -i 's/^GRUB_CMDLINE_LINUX="/&psi=1 /' /etc/default/grub && update-grub && reboot`
	}
}

// refused reports whether an error means missing privileges.
func refused(err error) bool { return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) }

func (s *subject) bpf(c *Check) {
	err := s.kernel.LoadBPF()
	switch {
	case err == nil:
		c.Why = "a program was loaded and closed again"
	case errors.Is(err, unix.ENOSYS):
		c.is(Missing, cmp.Or(s.builtWithout("CONFIG_BPF_SYSCALL"), "the bpf system call is missing: this kernel was built without CONFIG_BPF_SYSCALL, or a seccomp filter blocks it"), "")
	case refused(err):
		c.is(Missing, fmt.Sprintf("loading a program was denied (%s): it needs CAP_BPF, and no seccomp filter, lockdown or (before Linux 5.11) memlock limit that blocks it", said(err)), s.elevate())
	default:
		c.is(Missing, "loading the smallest program failed: "+said(err), "")
	}
}

func (s *subject) bpfStatistics(c *Check) {
	const why = "run time and run count of every BPF program"
	sysctl, sysctlErr := s.root.FirstLine("/proc/sys/kernel/bpf_stats_enabled", 64)
	err := s.kernel.EnableBPFStats()
	switch on := sysctl == "1"; {
	case on && err == nil:
		c.is(Limited, "enabled system-wide: costs about 20 ns per run of every program during measurements", "sysctl -w kernel.bpf_stats_enabled=0")
	case err == nil:
		c.Why = why + ", enabled only while they are read"
	case refused(err):
		c.is(Missing, fmt.Sprintf("%s; enabling them was denied (%s)", why, said(err)), s.elevate())
	case sysctlErr != nil:
		c.is(Missing, why+"; "+cmp.Or(s.builtWithout("CONFIG_BPF_SYSCALL"), "this kernel is older than 5.1"), "")
	case on:
		c.Why = why + ", enabled system-wide"
	default: // Linux 5.1 to 5.7 only have the sysctl
		c.is(Limited, fmt.Sprintf("%s; this kernel can only enable them system-wide (%s)", why, said(err)), "sysctl -w kernel.bpf_stats_enabled=1")
	}
}

func (s *subject) perf(c *Check) {
	c.Why = "software and hardware counters can be opened"
	if paranoid, err := s.root.FirstLine("/proc/sys/kernel/perf_event_paranoid", 64); err == nil {
		c.Version = "paranoid " + paranoid
	}
	fix := func(err error) string {
		if refused(err) {
			return "sysctl -w kernel.perf_event_paranoid=1"
		}
		return ""
	}
	if err := s.kernel.OpenPerfClock(); err != nil {
		c.is(Missing, fmt.Sprintf("cannot open a counter of tare's own task (%s)", said(err)), fix(err))
		if errors.Is(err, unix.ENOSYS) {
			c.Why = cmp.Or(s.builtWithout("CONFIG_PERF_EVENTS"), c.Why+": this kernel was built without CONFIG_PERF_EVENTS, or a seccomp filter blocks the system call")
		}
	} else if err := s.kernel.OpenPerfCycles(); err != nil {
		c.is(Limited, fmt.Sprintf("software counters only (cycles: %s)", said(err)), fix(err))
		if c.Fix == "" {
			c.Why += ": this machine has no performance counters, like most virtual machines"
		}
	}
}

func (s *subject) kvm(c *Check) {
	if c.Why = "/dev/kvm is available for VMs, such as Kata's; the first start shows whether a guest kernel boots"; !s.root.Exists("/dev/kvm") {
		c.is(Limited, "no /dev/kvm: VMs, such as Kata's, need QEMU's CPU emulation (accel=tcg); memory and its accounting are then valid, but CPU usage and times are those of the emulator and much higher", "")
	}
}

func (s *subject) vsock(c *Check) {
	if c.Why = "Kata's shim uses it to connect to the agent in a QEMU VM"; !s.root.Exists("/dev/vhost-vsock") {
		s.lacksModule(c, Limited, "no /dev/vhost-vsock: Kata's shim cannot connect to the agent in a QEMU VM, unless vhost-device-vsock replaces it; cloud-hypervisor and Firecracker do not need it", "vhost_vsock", "CONFIG_VHOST_VSOCK")
	}
}

// hasFileSystem reports whether the kernel supports a file system now. File systems of
// unloaded modules are not listed.
func (s *subject) hasFileSystem(name string) bool {
	data, err := s.root.Read("/proc/filesystems", 64<<10)
	return err == nil && slices.Contains(strings.Fields(string(data)), name)
}
