// Package machine describes a machine by all properties that can change a figure while the
// target stays the same. A run reads them once, when it begins, for the header of the
// record. Package nodestat reads the load of the machine during the run.
//
// All data comes from /proc, /sys and /etc. Every read has a limit, and parsing is strict.
// Unknown properties stay empty: comparisons of records use these fields, and an empty one
// means unknown. No property identifies the host or its owner.
package machine

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/record"
)

// Root is a folder with proc, sys and etc. "" is this machine; tests use other folders.
type Root string

// Capture describes the machine, including the file system of the folder that the run
// writes to.
func (r Root) Capture(dir string) record.Environment {
	cpu := r.cpu()
	env := record.Environment{
		Kernel:      r.Kernel(),
		KernelBuild: r.Word("/proc/sys/kernel/version"),
		OS:          r.system(),
		Arch:        arch(),
		CPUModel:    strings.Join(cpu.models, ", "),
		Governor:    r.Governor(),
		Virtual:     r.virtual(cpu),
		Mitigations: r.mitigations(),
		RootFS:      r.fileSystem(dir),
		Cgroup:      ModeNone,
	}
	env.ClockSource, _ = r.ClockSource()
	env.CPUs, _ = r.CPUs()
	env.LoadStart, _ = r.Load()
	if m, err := r.Memory(); err == nil {
		env.Memory, env.Swap = m.Total, m.SwapTotal
	}
	if c, err := r.Cgroups(); err == nil {
		env.Cgroup, env.Controllers = c.Mode(), c.controllers()
	} else {
		env.Cgroup = "" // unknown
	}
	if c, err := r.Capabilities(); err == nil {
		env.MissingCaps = c.Missing()
	}
	return env
}

// arch returns the kernel's name of the architecture, such as "x86_64". It uses uname(2)
// because /proc has it only since Linux 6.1.
func arch() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Machine[:])
}
