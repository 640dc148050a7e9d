// Package procs is the one place that reads what /proc says of processes: who
// they are, what they use, in which cgroups they are, and whose cost a program of
// a known name is.
//
// The files of a process are read below its folder, which is opened first, with
// system calls alone and into one buffer: a snapshot of a node reads five files
// of each of some hundred processes, at every tick of a sampler, and package os or
// prometheus/procfs would cost more than the kernel's own part. What they hold is
// hostile: a process chooses its name and its arguments, may end at any moment,
// and its pid be another's.
package procs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// ID is a process that cannot be mistaken for a later one with its number.
type ID struct {
	Pid   int
	Start uint64 // clock ticks since boot, field 22 of /proc/PID/stat
}

// Usage is what a process uses.
type Usage struct {
	CPU int64 // ns since it began, of its threads that are there
	PSS int64 // bytes
}

// with opens a process's folder for one reading. Errors wrap ErrGone when the
// process has ended.
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

// StatOf reads the stat of the process that has the pid now.
func StatOf(pid int) (Stat, error) {
	return with(pid, func(d Dir) (Stat, error) { return d.Stat("") })
}

// StatusOf reads the status of the process that has the pid now.
func StatusOf(pid int) (Status, error) { return with(pid, Dir.Status) }

// ArgsOf are the program and the arguments of the process that has the pid now.
func ArgsOf(pid int) []string {
	args, _ := with(pid, Dir.Args)
	return args
}

// RunVariable is in the environment of a user's command on the host, with the run's id.
const RunVariable = "TARE_RUN"

// environLimit is above what a program can be given: three quarters of 8 MiB, with its
// arguments, see execve(2).
const environLimit = 8 << 20

// EnvironmentOf are the variables, NAME=VALUE, with which the process began that has the pid
// now; none where they may not be read. They are not to be shown.
func EnvironmentOf(pid int) []string {
	text, _ := with(pid, func(d Dir) (string, error) {
		b, err := d.head("environ", environLimit)
		return string(b), err
	})
	return strings.Split(text, "\x00")
}

// Namespace is the link of a process's namespace of a kind, such as "pid:[4026531836]", ""
// where it may not be read. 0 stands for this process.
func Namespace(pid int, kind string) string {
	of := "self"
	if pid > 0 {
		of = strconv.Itoa(pid)
	}
	space, _ := os.Readlink("/proc/" + of + "/ns/" + kind)
	return space
}

// GroupsOf reads in which cgroups the process is that has the pid now.
func GroupsOf(pid int) (*Groups, error) {
	return with(pid, func(d Dir) (*Groups, error) {
		text, err := d.Read("cgroup")
		if err != nil {
			return nil, err
		}
		return ParseGroups(string(text)), nil
	})
}

// Identify returns the process that has the pid now.
func Identify(pid int) (ID, error) {
	s, err := StatOf(pid)
	return ID{Pid: pid, Start: s.Start}, err
}

// CPU reads the CPU time (ns) of a process. The error wraps ErrGone when it
// ended, also when another has its pid by now.
//
// It is the process's own clock: nanoseconds of all its threads, also of those
// that have ended. (/proc/PID/task/TID/schedstat is lost with its thread, and a
// daemon that locks goroutines to threads ends many.) The clock of another process
// can be read by anyone, see clock_getcpuclockid(3); where it cannot, there are
// hundredths of a second.
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

// Clock reads the CPU time (ns) of whoever has a pid, by its own clock; ok is false where
// nobody has, or that cannot be read.
func Clock(pid int) (ns int64, ok bool) {
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid)<<3|cpuClockSched, &t)
	return t.Nano(), err == nil
}

// cpuClockSched is CPUCLOCK_SCHED of the kernel's posix-timers.h.
const cpuClockSched = 2

// PSS reads the memory (bytes) of a process: its own, and its share of what
// others map too.
func (id ID) PSS() (int64, error) {
	return with(id.Pid, func(d Dir) (int64, error) {
		m, err := d.Memory()
		if err == nil {
			_, err = d.Same(id.Start)
		}
		return m.PSS, err
	})
}

// All lists the processes of this machine, ascending.
func All() []int {
	all, _ := new(Reader).Pids()
	return all
}

// Children are the pids whose parent is pid.
func Children(pid int) []int {
	var out []int
	for _, p := range All() {
		if s, err := StatOf(p); err == nil && s.PPid == pid {
			out = append(out, p)
		}
	}
	return out
}

// Own are tare itself and its children, such as its lanes.
func Own() []int { return append([]int{os.Getpid()}, Children(os.Getpid())...) }

// OwnCPU is the CPU time (ns) that tare itself has used, without its children's.
func OwnCPU() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
