package procs

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// Tick is the unit (ns) of times in /proc/PID/stat, USER_HZ: a hundredth of a
// second on every architecture that Go knows.
const Tick = 1_000_000_000 / 100

// Stat is the part of /proc/PID/stat that tare uses, see proc_pid_stat(5).
type Stat struct {
	Comm     string
	State    byte
	PPid     int
	Group    int // the process group
	Threads  int
	Ticks    uint64 // user and system
	Guest    uint64 // the part of Ticks in a KVM guest
	Waited   uint64 // ticks of children that it waited for, and of their children
	Start    uint64 // ticks since boot; identifies the process together with the pid
	Resident int64  // bytes
	Kernel   bool   // a kernel thread
	Dying    bool   // killed or exiting; some threads may still run
	Exit     int    // exit code of an ended process, 128+n for signal n; 0 if hidden
	// Image has the addresses at which stack and arguments begin. They change with an exec,
	// and are 0 if hidden.
	Image [2]uint64
}

// Ended reports whether the process has ended and its parent has not yet waited for it.
func (s *Stat) Ended() bool { return s.State == 'Z' || s.State == 'X' }

// Flags of linux/sched.h, and SIGKILL in a mask of signals.
const (
	kernelThread = 0x00200000 // PF_KTHREAD
	exiting      = 0x00000004 // PF_EXITING
	killed       = 1 << (9 - 1)
)

// parseStat counts fields from the last parenthesis because a name may contain any
// character.
func parseStat(text []byte) (Stat, error) {
	begin, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if begin < 0 || end < begin {
		return Stat{}, errForm
	}
	s := Stat{Comm: string(text[begin+1 : end])}
	rest := text[end+1:]
	var parent, group, threads, user, system, waitedUser, waitedSystem, flags, pages, pending, exit uint64
	wanted := [53]*uint64{52: &exit, 4: &parent, 5: &group, 9: &flags, 14: &user, 15: &system, 16: &waitedUser, 17: &waitedSystem, 20: &threads, 22: &s.Start, 24: &pages, 28: &s.Image[1], 31: &pending, 43: &s.Guest, 48: &s.Image[0]}
	field := 2 // the name, as numbered in proc_pid_stat(5)
	for field < 52 {
		rest = bytes.TrimLeft(rest, " \n")
		i := bytes.IndexAny(rest, " \n")
		if i < 0 {
			i = len(rest)
		}
		word := rest[:i]
		if rest = rest[i:]; len(word) == 0 {
			break
		}
		if field++; field == 3 {
			s.State = word[0]
		}
		if into := wanted[field]; into != nil {
			var err error
			if *into, err = strconv.ParseUint(string(word), 10, 64); err != nil {
				return Stat{}, errForm
			}
		}
	}
	if field < 22 || max(user, system, waitedUser, waitedSystem) > 1<<55 || max(parent, group, threads) > MaxPid || pages > 1<<40 {
		return Stat{}, errForm
	}
	s.PPid, s.Group, s.Threads = int(parent), int(group), int(threads)
	s.Ticks, s.Waited, s.Kernel = user+system, waitedUser+waitedSystem, flags&kernelThread != 0
	s.Dying = s.Ended() || flags&exiting != 0 || pending&killed != 0
	s.Resident = int64(pages) * pageSize
	if s.Exit = int(exit >> 8 & 0xff); exit&0x7f != 0 { // encoded as in wait(2)
		s.Exit = 128 + int(exit&0x7f)
	}
	return s, nil
}

// Stat reads the stat of the process, or of a thread if task is its folder.
func (d Dir) Stat(task string) (Stat, error) {
	text, err := d.Read(task + "stat")
	if err != nil {
		return Stat{}, err
	}
	s, err := parseStat(text)
	if err != nil {
		err = fmt.Errorf("parse %s/%sstat: %w", d.path, task, err)
	}
	return s, err
}

// Same reads the stat of the process that began at start. The error wraps errReused if
// another process has its pid.
func (d Dir) Same(start uint64) (Stat, error) {
	s, err := d.Stat("")
	if err == nil && s.Start != start {
		err = errReused
	}
	return s, err
}

// Status is the part of /proc/PID/status that tare uses, see proc_pid_status(5). Memory
// is in bytes; kernel threads and zombies have none.
type Status struct {
	NSpid   []int // the pid in each pid namespace, from the outermost inwards
	RSS     int64
	RSSAnon int64
	VMPTE   int64
	// Effective and Bounding are sets of capabilities: bit n stands for capability n.
	Effective, Bounding uint64
	Signals
}

// Signals are the signals that the process handles, ignores, and blocks in its first
// thread: bit n-1 stands for signal n.
type Signals struct{ Caught, Ignored, Blocked uint64 }

func parseStatus(text []byte) (Status, error) {
	var s Status
	amounts := map[string]*int64{"VmRSS": &s.RSS, "RssAnon": &s.RSSAnon, "VmPTE": &s.VMPTE}
	masks := map[string]*uint64{"SigCgt": &s.Caught, "SigIgn": &s.Ignored, "SigBlk": &s.Blocked, "CapEff": &s.Effective, "CapBnd": &s.Bounding}
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		var err error
		if into := amounts[string(key)]; into != nil {
			*into, err = kilobytes(value)
		} else if into := masks[string(key)]; into != nil {
			*into, err = strconv.ParseUint(strings.TrimSpace(string(value)), 16, 64)
		} else if string(key) == "NSpid" {
			for word := range strings.FieldsSeq(string(value)) {
				n, wordErr := strconv.Atoi(word)
				if wordErr != nil || n < 0 || n > MaxPid || len(s.NSpid) == 64 {
					return Status{}, errForm
				}
				s.NSpid = append(s.NSpid, n)
			}
		}
		if err != nil {
			return Status{}, errForm
		}
	}
	return s, nil
}

// Status reads the status of the process.
func (d Dir) Status() (Status, error) {
	text, err := d.Read("status")
	if err != nil {
		return Status{}, err
	}
	return parseStatus(text)
}

// kilobytes parses "  123 kB" and returns bytes.
func kilobytes(value []byte) (int64, error) {
	number, unit, _ := strings.Cut(strings.TrimSpace(string(value)), " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || strings.TrimSpace(unit) != "kB" || n < 0 || n > 1<<46 {
		return 0, errForm
	}
	return n << 10, nil
}

var pageSize = int64(os.Getpagesize())

// Anon reads the anonymous memory (bytes) from statm: resident minus shared pages. They
// are the counters of RssAnon in status, which takes the kernel three times as long.
func (d Dir) Anon() (int64, error) {
	text, err := d.Read("statm")
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(text)
	if len(fields) < 3 {
		return 0, errForm
	}
	resident, ok := machine.Number(fields[1])
	shared, ok2 := machine.Number(fields[2])
	if !ok || !ok2 || max(resident, shared) > 1<<44 {
		return 0, errForm
	}
	return max(0, resident-shared) * pageSize, nil
}

// HowEnded describes an exit status; 128+n stands for signal n.
func HowEnded(exit int) string {
	if n := unix.Signal(exit - 128); n > 0 && unix.SignalName(n) != "" {
		return "killed by " + SignalName(n)
	}
	return fmt.Sprintf("exit status %d", exit)
}

// SignalName returns the name of a signal, such as "SIGTERM", or "signal 35" if it has none.
func SignalName(s unix.Signal) string {
	return cmp.Or(unix.SignalName(s), fmt.Sprintf("signal %d", int(s)))
}
