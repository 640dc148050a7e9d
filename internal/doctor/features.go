package doctor

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

func (s *subject) features() []Check {
	return []Check{
		s.linux(),
		s.cgroups(),
		s.namespaces(),
		s.overlay(),
		s.pressure(),
		s.bpf(),
		s.bpfStatistics(),
		s.perf(),
	}
}

func (s *subject) linux() Check {
	c := Check{Area: AreaKernel, Name: "Linux", Version: s.root.Kernel(), Status: OK}
	if c.Version == "" {
		c.Status, c.Why = Limited, "its release could not be read from /proc/sys/kernel/osrelease"
	}
	return c
}

// neededControllers are those that every container of a run has a limit in.
var neededControllers = []string{"cpu", "memory", "pids"}

func (s *subject) cgroups() Check {
	c := Check{Area: AreaKernel, Name: "cgroups", Status: OK}
	groups, err := s.root.Cgroups()
	if err != nil {
		c.Status, c.Why = Limited, fmt.Sprintf("could not be read: %v", err)
		return c
	}
	c.Version = groups.Mode
	var lacking []string
	for _, controller := range neededControllers {
		if _, _, ok := groups.Find(controller); !ok {
			lacking = append(lacking, controller)
		}
	}
	switch {
	case groups.Mode == machine.ModeNone:
		c.Status, c.Why = Missing, "nothing is mounted: no runtime can limit or account a container"
		c.Fix = "mount -t cgroup2 cgroup2 /sys/fs/cgroup"
	case len(lacking) > 0:
		c.Status = Limited
		c.Why = "no controller for " + strings.Join(lacking, ", ") + ": runtimes refuse such limits or ignore them"
	case groups.Mode == machine.ModeHybrid:
		c.Why = "version 1 beside version 2; crun refuses that and needs a private mount namespace with version 1 only, which tare makes by itself"
	default:
		c.Why = "cpu, memory and pids can be limited and accounted"
	}
	return c
}

func (s *subject) namespaces() Check {
	c := Check{Area: AreaKernel, Name: "namespaces", Status: OK}
	var have, lack []string
	for _, ns := range []struct {
		name string
		lack Status
	}{
		{"mnt", Missing}, {"pid", Missing}, {"net", Missing}, {"ipc", Missing}, {"uts", Missing},
		{"cgroup", Limited}, // Linux 4.6
		{"time", Limited},   // Linux 5.6
	} {
		if s.root.Exists("/proc/self/ns/" + ns.name) {
			have = append(have, ns.name)
			continue
		}
		lack = append(lack, ns.name)
		if c.Status != Missing {
			c.Status = ns.lack
		}
	}
	c.Version = fmt.Sprintf("%d of %d", len(have), len(have)+len(lack))
	c.Why = "containers and the floor are made of them: " + strings.Join(have, ", ")
	if len(lack) > 0 {
		c.Why = "this kernel has none of the kind " + strings.Join(lack, ", ") + "; cgroup came with Linux 4.6, time with 5.6"
	}
	return c
}

func (s *subject) overlay() Check {
	c := Check{Area: AreaKernel, Name: "overlayfs", Status: OK, Why: "image layers are stacked with it"}
	if s.hasFileSystem("overlay") {
		return c
	}
	c.Status, c.Why = Missing, "not in /proc/filesystems: engines copy image layers instead, which makes every create slower"
	if without := s.builtWithout("CONFIG_OVERLAY_FS"); without != "" || !s.root.Exists("/proc/modules") {
		c.Why += "; " + firstOf(without, "this kernel has no modules to load")
		return c
	}
	c.Fix = "modprobe overlay"
	return c
}

func (s *subject) pressure() Check {
	c := Check{Area: AreaKernel, Name: "pressure (PSI)", Status: OK,
		Why: "pressure stall information says how long tasks waited for CPU, memory and disk during a run"}
	_, err := s.root.FirstLine("/proc/pressure/cpu", 1024)
	if err == nil {
		return c
	}
	c.Status = Missing
	c.Why += "; " + firstOf(s.builtWithout("CONFIG_PSI"),
		"this kernel is older than 4.20, has it not built in, or was started without psi=1")
	if s.builtWithout("CONFIG_PSI") == "" && s.root.Exists("/etc/default/grub") {
		c.Fix = `sed -i 's/^GRUB_CMDLINE_LINUX="/&psi=1 /' /etc/default/grub && update-grub && reboot`
	}
	return c
}

func (s *subject) bpf() Check {
	c := Check{Area: AreaKernel, Name: "BPF", Status: OK, Why: "a program was loaded and closed again"}
	err := s.kernel.LoadBPF()
	switch {
	case err == nil:
	case errors.Is(err, unix.ENOSYS):
		c.Status = Missing
		c.Why = firstOf(s.builtWithout("CONFIG_BPF_SYSCALL"), "the bpf call is not there: this kernel was built without CONFIG_BPF_SYSCALL, or a seccomp filter hides it")
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		c.Status, c.Fix = Missing, s.elevate()
		c.Why = fmt.Sprintf("loading a program was refused (%s): it needs CAP_BPF, and no seccomp filter, lockdown or, before Linux 5.11, memlock limit in the way", said(err))
	default:
		c.Status, c.Why = Missing, fmt.Sprintf("loading the smallest program failed: %s", said(err))
	}
	return c
}

func (s *subject) bpfStatistics() Check {
	const why = "run time and run count of every BPF program"
	c := Check{Area: AreaKernel, Name: "BPF statistics", Status: OK, Why: why}
	sysctl, sysctlErr := s.root.FirstLine("/proc/sys/kernel/bpf_stats_enabled", 64)
	err := s.kernel.EnableBPFStats()
	switch on := sysctl == "1"; {
	case on && err == nil:
		c.Status = Limited
		c.Why = "switched on for everyone: about 20 ns for every run of every program, in all that is weighed"
		c.Fix = "sysctl -w kernel.bpf_stats_enabled=0"
	case err == nil:
		c.Why = why + ", switched on only while it is read"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		c.Status, c.Fix = Missing, s.elevate()
		c.Why = fmt.Sprintf("%s; switching it on was refused (%s)", why, said(err))
	case sysctlErr != nil:
		c.Status = Missing
		c.Why = why + "; " + firstOf(s.builtWithout("CONFIG_BPF_SYSCALL"), "this kernel is older than 5.1")
	case on:
		c.Why = why + ", switched on for everyone"
	default: // Linux 5.1 to 5.7 know only the sysctl
		c.Status, c.Fix = Limited, "sysctl -w kernel.bpf_stats_enabled=1"
		c.Why = fmt.Sprintf("%s; this kernel can't switch it on for one reader alone (%s)", why, said(err))
	}
	return c
}

func (s *subject) perf() Check {
	c := Check{Area: AreaKernel, Name: "perf events", Status: OK, Why: "software and hardware counters can be opened"}
	paranoid, err := s.root.FirstLine("/proc/sys/kernel/perf_event_paranoid", 64)
	if err == nil {
		c.Version = "paranoid " + paranoid
	}
	if err := s.kernel.OpenPerfClock(); err != nil {
		c.Status = Missing
		c.Why = fmt.Sprintf("a counter of our own task could not be opened (%s)", said(err))
		if errors.Is(err, unix.ENOSYS) {
			c.Why = firstOf(s.builtWithout("CONFIG_PERF_EVENTS"), c.Why+": this kernel was built without CONFIG_PERF_EVENTS, or a seccomp filter hides the call")
		}
		c.Fix = s.perfFix(err)
		return c
	}
	if err := s.kernel.OpenPerfCycles(); err != nil {
		c.Status, c.Fix = Limited, s.perfFix(err)
		c.Why = fmt.Sprintf("software counters only (cycles: %s)", said(err))
		if c.Fix == "" {
			c.Why += ": this machine shows no performance counters, as most virtual ones"
		}
	}
	return c
}

func (s *subject) perfFix(err error) string {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return "sysctl -w kernel.perf_event_paranoid=1"
	}
	return ""
}

// hasFileSystem tells whether the kernel knows a type of file system now. A
// module that is not loaded is not in the list.
func (s *subject) hasFileSystem(name string) bool {
	data, err := s.root.Read("/proc/filesystems", 64<<10)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[len(fields)-1] == name {
			return true
		}
	}
	return false
}
