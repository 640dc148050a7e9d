// Package procs reads /proc/PID: identity, usage, cgroups and arguments of processes. It
// also maps the names of known programs to roles.
//
// A reader opens the folder of a process first and reads files below it with plain
// system calls into one buffer. A snapshot of a node reads five files of some hundred
// processes at every tick of a sampler; package os or prometheus/procfs would cost more
// than the kernel does. The content is hostile: a process chooses its name and its
// arguments, may end at any moment, and the kernel may reuse its pid.
package procs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// ID identifies a process even after the kernel has reused its pid.
type ID struct {
	Pid   int
	Start uint64 // clock ticks since boot, field 22 of /proc/PID/stat
}

// Usage is the CPU time and the memory of a process.
type Usage struct {
	CPU int64 // ns since it began
	PSS int64 // bytes
}

// with calls read with the folder of a process. Errors wrap ErrGone if the process has
// ended.
func with[T any](pid int, read func(Dir) (T, error)) (T, error) {
	r := readers.Get().(*Reader)
	defer readers.Put(r)
	d, err := r.Open(pid)
	var out T
	if err == nil {
		defer d.Close()
		out, err = read(d)
	}
	if err != nil && Gone(err) && !errors.Is(err, ErrGone) {
		err = fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return out, err
}

var readers = sync.Pool{New: func() any { return new(Reader) }}

// StatOf reads the stat of a pid.
func StatOf(pid int) (Stat, error) {
	return with(pid, func(d Dir) (Stat, error) { return d.Stat("") })
}

// StatusOf reads the status of a pid.
func StatusOf(pid int) (Status, error) { return with(pid, Dir.Status) }

// ArgsOf returns the program and the arguments of a pid, or nil if they are unreadable.
func ArgsOf(pid int) []string {
	args, _ := with(pid, Dir.Args)
	return args
}

// RunVariable is the environment variable that holds the run's id for a user's command
// on the host.
const RunVariable = "TARE_RUN"

// environLimit exceeds the largest environment: three quarters of 8 MiB with the
// arguments, see execve(2).
const environLimit = 8 << 20

// EnvironmentOf returns the variables, NAME=VALUE, with which a pid began; none if they
// are unreadable. They may hold secrets and must not be shown.
func EnvironmentOf(pid int) []string {
	text, _ := with(pid, func(d Dir) (string, error) {
		b, err := d.head("environ", environLimit)
		return string(b), err
	})
	return strings.Split(text, "\x00")
}

// Namespace returns the namespace of one kind of a process, such as "pid:[4026531836]",
// or "" if it is unreadable. Pid 0 stands for this process.
func Namespace(pid int, kind string) string {
	of := "self"
	if pid > 0 {
		of = strconv.Itoa(pid)
	}
	space, _ := os.Readlink("/proc/" + of + "/ns/" + kind)
	return space
}

// GroupsOf reads the cgroups of a pid.
func GroupsOf(pid int) (*Groups, error) {
	return with(pid, func(d Dir) (*Groups, error) {
		text, err := d.Read("cgroup")
		if err != nil {
			return nil, err
		}
		return ParseGroups(string(text)), nil
	})
}

// Identify returns the ID of the process that has the pid now.
func Identify(pid int) (ID, error) {
	s, err := StatOf(pid)
	return ID{Pid: pid, Start: s.Start}, err
}

// CPU reads the CPU time (ns) of a process. The error wraps ErrGone if the process has
// ended or its pid is reused.
//
// It reads the process's CPU clock: nanoseconds of all threads, including ended ones.
// (/proc/PID/task/TID/schedstat ends with its thread, and a daemon that locks goroutines
// to threads ends many.) Any user can read this clock, see clock_getcpuclockid(3). If it
// fails, CPU falls back to stat, which counts hundredths of a second.
func (id ID) CPU() (int64, error) {
	var t unix.Timespec
	clockErr := unix.ClockGettime(int32(^id.Pid)<<3|cpuClockSched, &t)
	if errors.Is(clockErr, unix.EINVAL) {
		return 0, fmt.Errorf("process %d: %w", id.Pid, ErrGone)
	}
	s, err := with(id.Pid, func(d Dir) (Stat, error) { return d.Same(id.Start) })
	if err != nil {
		return 0, err
	}
	if clockErr != nil {
		return int64(s.Ticks) * Tick, nil
	}
	return t.Nano(), nil
}

// Clock reads the CPU clock (ns) of a pid. It reports false if there is none or it is
// unreadable.
func Clock(pid int) (ns int64, ok bool) {
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid)<<3|cpuClockSched, &t)
	return t.Nano(), err == nil
}

// cpuClockSched is CPUCLOCK_SCHED of the kernel's posix-timers.h.
const cpuClockSched = 2

// PSS reads the proportional set size (bytes) of a process.
func (id ID) PSS() (int64, error) {
	return with(id.Pid, func(d Dir) (int64, error) {
		m, err := d.Memory()
		if err == nil {
			_, err = d.Same(id.Start)
		}
		return m.PSS, err
	})
}

// All lists the processes of this machine in ascending order.
func All() []int {
	all, _ := new(Reader).Pids()
	return all
}

// Children lists the processes that have this parent.
func Children(pid int) []int {
	return slices.DeleteFunc(All(), func(p int) bool {
		s, err := StatOf(p)
		return err != nil || s.PPid != pid
	})
}

// Own lists tare and its children, such as its lanes.
func Own() []int { return append([]int{os.Getpid()}, Children(os.Getpid())...) }

// OwnCPU returns the CPU time (ns) of tare without its children.
func OwnCPU() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
