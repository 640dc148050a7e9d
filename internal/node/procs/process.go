// Package process finds processes by facts and reads what they use: memory as
// PSS (smaps_rollup), so that pages which several share are counted once, and
// CPU time in nanoseconds (schedstat of every thread) where the kernel has it.
package procs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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

// ErrGone is wrapped by errors about a process that is not there any more.
var ErrGone = errors.New("the process is gone")

// Identify returns the process that has the pid now.
func Identify(pid int) (ID, error) {
	s, err := stat(pid)
	return ID{Pid: pid, Start: s.start}, err
}

// CPU reads the CPU time (ns) of a process. The error wraps ErrGone when it
// ended, also when another has its pid by now.
func (id ID) CPU() (int64, error) {
	ns, err := cpu(id.Pid)
	if err != nil {
		return 0, err
	}
	return ns, id.check()
}

// PSS reads the memory (bytes) of a process: its own, and its share of what
// others map too. It costs the kernel a walk through the page tables, about a
// millisecond for 100 MiB, with the process's memory map locked for reading.
func (id ID) PSS() (int64, error) {
	n, err := pss(id.Pid)
	if err != nil {
		return 0, err
	}
	return n, id.check()
}

func (id ID) check() error {
	s, err := stat(id.Pid)
	if err == nil && s.start != id.Start {
		err = fmt.Errorf("process %d: %w", id.Pid, ErrGone)
	}
	return err
}

type stats struct {
	ppid  int
	start uint64
	ticks uint64 // utime + stime
}

// read reads a file of /proc/PID, at most a MiB of it.
func read(pid int, name string) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err == nil {
		defer f.Close()
		var b []byte
		if b, err = io.ReadAll(io.LimitReader(f, 1<<20)); err == nil {
			return b, nil
		}
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return nil, err
}

// stat reads /proc/PID/stat, see proc_pid_stat(5). The name in it may hold
// anything, so the fields are counted from the last parenthesis.
func stat(pid int) (stats, error) {
	b, err := read(pid, "stat")
	if err != nil {
		return stats{}, err
	}
	end := bytes.LastIndexByte(b, ')')
	fields := strings.Fields(string(b[end+1:]))
	if end < 0 || len(fields) < 20 {
		return stats{}, fmt.Errorf("/proc/%d/stat: unknown form", pid)
	}
	var s stats
	var errs [4]error
	var user, system uint64
	s.ppid, errs[0] = strconv.Atoi(fields[1]) // the state is fields[0], field 3
	user, errs[1] = strconv.ParseUint(fields[11], 10, 64)
	system, errs[2] = strconv.ParseUint(fields[12], 10, 64)
	s.start, errs[3] = strconv.ParseUint(fields[19], 10, 64)
	s.ticks = user + system
	if err := errors.Join(errs[:]...); err != nil {
		return stats{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return s, nil
}

// Parent returns the pid of a process's parent.
func Parent(pid int) (int, error) {
	s, err := stat(pid)
	return s.ppid, err
}

// ticksPerSecond is what the kernel reports times in, USER_HZ: 100 on every
// architecture that Go knows.
const ticksPerSecond = 100

// cpu reads the process's own CPU-time clock: nanoseconds of all its threads,
// also of those that have ended. (/proc/PID/task/TID/schedstat is lost with its
// thread, and a daemon that locks goroutines to threads ends many.) The clock of
// another process can be read by anyone, see clock_getcpuclockid(3); where it
// cannot, there are hundredths of a second.
func cpu(pid int) (int64, error) {
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid)<<3|cpuClockSched, &t)
	switch {
	case err == nil:
		return t.Nano(), nil
	case errors.Is(err, unix.EINVAL):
		return 0, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	s, err := stat(pid)
	return int64(s.ticks) * (1e9 / ticksPerSecond), err
}

// cpuClockSched is CPUCLOCK_SCHED of the kernel's posix-timers.h.
const cpuClockSched = 2

// pss reads the Pss line of smaps_rollup, see proc_pid_smaps(5).
func pss(pid int) (int64, error) {
	b, err := read(pid, "smaps_rollup")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, unit, _ := strings.Cut(strings.TrimSpace(rest), " ")
			n, err := strconv.ParseInt(kib, 10, 64)
			if err != nil || strings.TrimSpace(unit) != "kB" || n < 0 || n > 1<<50 {
				return 0, fmt.Errorf("/proc/%d/smaps_rollup: unknown form", pid)
			}
			return n << 10, nil
		}
	}
	return 0, fmt.Errorf("process %d: %w", pid, ErrGone) // a zombie has no memory
}

func holds(pid int, inodes map[string]bool) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if link, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && inodes[link] {
			return true
		}
	}
	return false
}

func pids() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	var out []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// Found is a process with its program and its arguments.
type Found struct {
	Pid  int
	Name string // base name of the program, from its first argument
	Args []string
	ID   string // which of the ids it mentions
}

// Children returns the processes whose parent is pid.
func Children(pid int) []Found {
	var out []Found
	for _, p := range pids() {
		if parent, err := Parent(p); err == nil && parent == pid {
			if f, ok := found(p); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

// Own are tare itself and its children, such as its lanes.
func Own() []int {
	own := []int{os.Getpid()}
	for _, f := range Children(os.Getpid()) {
		own = append(own, f.Pid)
	}
	return own
}

// OwnCPU is the CPU time (ns) that tare itself has used, without its children's.
func OwnCPU() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// Flag returns the value of a flag in an argument list, as "-id X" and as "-id=X",
// "" for none.
func Flag(args []string, flags ...string) string {
	for i, arg := range args {
		for _, f := range flags {
			if arg == f && i+1 < len(args) {
				return args[i+1]
			}
			if value, ok := strings.CutPrefix(arg, f+"="); ok {
				return value
			}
		}
	}
	return ""
}

// Name is the base name of a process's program, "" where it is not known.
func Name(pid int) string {
	f, _ := found(pid)
	return f.Name
}

// Named returns the processes whose program has an accepted name.
func Named(program func(name string) bool) []Found {
	var out []Found
	for _, p := range pids() {
		if f, ok := found(p); ok && program(f.Name) {
			out = append(out, f)
		}
	}
	return out
}

// Mentioning returns the processes that have one of the ids in an argument:
// alone, or as a part of it between characters that cannot be in an id
// ("…/ID/config" and "name=ID" are, "sandbox-ID" is not).
// Program names an accepted program ("containerd-shim-runc-v2", "conmon");
// all others are passed over without a look at their arguments.
func Mentioning(ids []string, program func(name string) bool) []Found {
	want := make(map[string]bool, len(ids))
	for _, id := range ids {
		if id != "" {
			want[id] = true
		}
	}
	if len(want) == 0 {
		return nil
	}
	var out []Found
	for _, pid := range pids() {
		f, ok := found(pid)
		if !ok || !program(f.Name) {
			continue
		}
		for _, arg := range f.Args {
			for _, part := range strings.FieldsFunc(arg, separator) {
				if want[part] {
					f.ID = part
				}
			}
		}
		if f.ID != "" {
			out = append(out, f)
		}
	}
	return out
}

func separator(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
}

func found(pid int) (Found, bool) {
	b, err := read(pid, "cmdline")
	if err != nil || len(b) == 0 {
		return Found{}, false
	}
	args := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	return Found{Pid: pid, Name: filepath.Base(args[0]), Args: args[1:]}, true
}
