// Package machine reads what a machine is: all that can change a figure
// without the target having changed. It is read once, when a run begins, and
// goes into the head of the record; how the machine fares during the run is
// package nodestat's.
//
// Everything comes from /proc, /sys and /etc, and every file is read with a
// bound and parsed strictly. What can't be read is left empty and never
// guessed: two records are compared by these fields, and an empty one says
// "unknown" where a wrong one would say "alike". The name of the host is not
// among them, nor anything else that tells whose machine it is.
package machine

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/record"
)

// Root is where the machine's file systems are found: "" for the real ones, in
// tests a folder with proc, sys and etc in it.
type Root string

// Capture describes this machine. The folder is the one that the run writes
// to; its file system is part of the description.
func Capture(dir string) record.Environment {
	return Root("").capture(dir)
}

// capture describes the machine below the root.
func (r Root) capture(dir string) record.Environment {
	cpu := r.cpu()
	env := record.Environment{
		Kernel:      r.Kernel(),
		KernelBuild: r.word("/proc/sys/kernel/version"),
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
		env.Cgroup = "" // not read is not "none"
	}
	if c, err := r.Capabilities(); err == nil {
		env.MissingCaps = c.Missing()
	}
	return env
}

// arch is the machine's own name for its architecture, "x86_64". It is the one
// thing that uname(2) says and /proc did not before Linux 6.1.
func arch() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Machine[:])
}
