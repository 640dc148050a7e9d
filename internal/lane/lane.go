// Package lane performs operations and stamps them.
//
// The timing is not done in Go. A lane is a tiny static process (src/lane.c,
// embedded) that forks, execs, waits and reads the clock as a bare C loop
// would; this package keeps a pool of them, tells them through shared memory
// what to do, releases them together with one futex wake, and sleeps until the
// last one is done. So neither the garbage collector nor the scheduler of Go
// is inside a measured interval, and a hundred lanes start within a few
// milliseconds of each other.
//
// A lane watches up to three things at once, each stamped as it happens: its
// command's exit, the line by which the probe reports its first instruction,
// and the exit of a container's first process.
package lane

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kind is what a lane is told to do.
type Kind uint32

// What lanes do. The values are those of src/shared.h.
const (
	none        Kind = 0
	Exec        Kind = 1 // run a command and wait for it
	Spawn       Kind = 2 // start a command and let it run
	Kill        Kind = 3 // a signal to the workload that this lane made, Watch
	FloorCreate Kind = 4 // namespaces, cgroups, root; stop before exec
	FloorStart  Kind = 5 // exec
	FloorRun    Kind = 6 // both
	FloorRemove Kind = 7 // remove the cgroups
)

// Need is what ends an operation, besides the end of its command.
type Need uint32

// Needs may be combined.
const (
	NeedCall  Need = 1 // the command has exited; implied by Exec
	NeedReady Need = 2 // the probe reported with Token
	NeedExit  Need = 4 // process Watch is gone
)

// Order is one operation for one lane.
type Order struct {
	Kind    Kind
	Args    []string // the command with its absolute path first; the tagged list of src/floor.h for the floor
	Need    Need
	Watch   int         // process whose exit is awaited, or that is told to end
	Signal  unix.Signal // for Kill; SIGTERM when 0
	Token   string
	Timeout time.Duration
	// Keep is a file into which everything goes that the workload says, until the lane
	// is given another order; "" where it says nothing that anybody would read.
	Keep string
}

// String is the command line, ready to be pasted into a shell.
func (o Order) String() string { return Quote(o.Args) }

// Result is what a lane saw. Times are ns of CLOCK_MONOTONIC, zero where the
// operation has no such moment.
type Result struct {
	Start, Spawned, Returned, Seen, Exited int64

	UserCPU, SysCPU time.Duration // of the command and the children it waited for
	MaxRSS          int64         // bytes
	Status          unix.WaitStatus
	Pid             int             // of the workload, where the lane itself made it
	Workload        unix.WaitStatus // how Watch ended
	WorkloadKnown   bool            // false when it was not this lane's to wait for

	Stdout, Stderr string // cut to 32 KiB and 8 KiB
	Dropped        int    // bytes of output that were cut

	OwnCPU time.Duration // of the lane itself, from the release on

	Err error // an *Error, or nil when the operation was performed; a command's own exit status is not an error
}

// ProbeTime returns the time at which the probe executed its first
// instruction, on the workload's own clock, from its line of output.
func (r *Result) ProbeTime(token string) (ns int64, ok bool) { return ProbeTime(r.Stdout, token) }

// ProbeTime finds the probe's line in an output, and in it the time (ns) of the
// workload's clock at its first instruction. It goes through the output but once, which
// may be long and is asked for many tokens.
func ProbeTime(output, token string) (ns int64, ok bool) {
	begin, rest := "\ntare-probe/1 "+token+" ", "\n"+output
	for {
		_, after, found := strings.Cut(rest, begin)
		if !found {
			return 0, false
		}
		digits, _, whole := strings.Cut(after, "\n")
		if ns, err := strconv.ParseUint(digits, 10, 63); err == nil && whole && len(digits) <= 18 {
			return int64(ns), true
		}
		rest = after
	}
}

// Error says at which step an operation came to nothing.
type Error struct {
	Step    Step
	Errno   unix.Errno
	Missing Need // what was still awaited
}

func (e *Error) Error() string {
	switch e.Step {
	case StepTimeout:
		return "timed out waiting for " + e.Missing.String()
	case StepAbort:
		return "interrupted while waiting for " + e.Missing.String()
	case StepGone:
		return "the workload ended before it was told to"
	}
	return fmt.Sprintf("%s: %s", e.Step, e.Errno.Error())
}

func (e *Error) Unwrap() error { return e.Errno }

// Step is where an operation failed.
type Step uint32

// The steps, with the values of src/shared.h.
const (
	StepSpawn   Step = 1
	StepExec    Step = 2
	StepWatch   Step = 3
	StepCgroup  Step = 4
	StepRoot    Step = 5
	StepKill    Step = 6
	StepRemove  Step = 7
	StepTimeout Step = 8
	StepAbort   Step = 9
	StepGone    Step = 10
	StepLost    Step = 100 // the lane itself died
)

var stepNames = map[Step]string{
	StepSpawn: "clone", StepExec: "exec", StepWatch: "pidfd_open", StepCgroup: "set up the cgroup",
	StepRoot: "set up the root file system", StepKill: "kill", StepRemove: "remove the cgroup",
	StepTimeout: "time-out", StepAbort: "interrupted", StepGone: "workload gone", StepLost: "the lane's own process died",
}

func (s Step) String() string {
	if name, ok := stepNames[s]; ok {
		return name
	}
	return fmt.Sprintf("step %d", uint32(s))
}

func (n Need) String() string {
	var parts []string
	if n&NeedCall != 0 {
		parts = append(parts, "the command's exit")
	}
	if n&NeedReady != 0 {
		parts = append(parts, "the workload's first output")
	}
	if n&NeedExit != 0 {
		parts = append(parts, "the workload's exit")
	}
	if len(parts) == 0 {
		return "the kernel"
	}
	return strings.Join(parts, " and ")
}

// Quote joins arguments so that a POSIX shell splits them again as they were.
func Quote(args []string) string {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		if a != "" && strings.Trim(a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-") == "" {
			b.WriteString(a)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(a, "'", `'\''`) + "'")
	}
	return b.String()
}

var errTooLong = errors.New("command line too long for a lane (256 arguments, 16 KiB)")

// Environment is what commands are given beside more ("NAME=value"): what they need to find programs and
// folders. The rest of tare's own stays out, since some of it changes what is
// measured: GOMAXPROCS and GOGC a runtime written in Go, NOTIFY_SOCKET and
// LISTEN_FDS one that takes part in systemd's protocols.
func Environment(more []string) []string {
	env := slices.Clone(more)
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "XDG_RUNTIME_DIR":
			env = append(env, v)
		default:
			if strings.HasPrefix(name, "LC_") {
				env = append(env, v)
			}
		}
	}
	return env
}
