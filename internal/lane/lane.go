// Package lane performs operations and timestamps them.
//
// The timing is not done in Go. A lane is a small static process (src/lane.c, embedded) that
// forks, executes, waits and reads the clock like a plain C loop. This package keeps a pool of
// lanes and passes orders through shared memory. It releases them with one futex wake and
// sleeps until the last one is done. So no measured interval includes Go's garbage collector
// or scheduler, and a hundred lanes start within a few milliseconds.
//
// A lane timestamps up to three events: the exit of its command, the probe's line about its
// first instruction, and the exit of a container's first process.
package lane

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kind is the kind of an order.
type Kind uint32

// Kinds of orders, with the values of src/shared.h.
const (
	none        Kind = 0
	Exec        Kind = 1 // run a command and wait for it
	Spawn       Kind = 2 // start a command and let it run
	Kill        Kind = 3 // send a signal to the workload of this lane, Watch
	FloorCreate Kind = 4 // namespaces, cgroups, root; stop before exec
	FloorStart  Kind = 5 // exec
	FloorRun    Kind = 6 // both
	FloorRemove Kind = 7 // remove the cgroups
)

// Need is a condition for the end of an operation.
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
	Args    []string // the command, beginning with its absolute path; for the floor, the tagged list of src/floor.h
	Need    Need
	Watch   int         // process to wait for or to signal
	Signal  unix.Signal // for Kill; SIGTERM when 0
	Token   string
	Timeout time.Duration
	// Keep is a file for the output of the workload until the next order of the lane, or "".
	Keep string
}

// String returns the command line for a shell.
func (o Order) String() string { return Quote(o.Args) }

// Result is the result of an order. Times are ns of CLOCK_MONOTONIC, or 0 if there was no
// such event.
type Result struct {
	Start, Spawned, Returned, Seen, Exited int64

	UserCPU, SysCPU time.Duration // of the command and the children it waited for
	MaxRSS          int64         // bytes
	Status          unix.WaitStatus
	Pid             int             // of a workload made by the lane itself
	Workload        unix.WaitStatus // exit status of Watch
	WorkloadKnown   bool            // false if the lane could not wait for it

	Stdout, Stderr string // cut to 32 KiB and 8 KiB
	Dropped        int    // bytes of output that were cut

	OwnCPU time.Duration // of the lane since the release

	Err error // *Error if the operation was not performed; the exit status of a command is not an error
}

// ProbeTime returns the time at which the probe executed its first
// instruction, on the workload's own clock, from its line of output.
func (r *Result) ProbeTime(token string) (ns int64, ok bool) { return ProbeTime(r.Stdout, token) }

// ProbeTime returns the time (ns) of the workload's clock at its first instruction, from the
// probe's line in an output. It scans the output once, because the output can be long and there
// are many tokens.
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

// Error is the failure of an operation at a step.
type Error struct {
	Step    Step
	Errno   unix.Errno
	Missing Need // conditions not met
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

// Step is the step at which an operation failed.
type Step uint32

// Steps, with the values of src/shared.h.
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
	for i, need := range []string{"the command's exit", "the workload's first output", "the workload's exit"} {
		if n&(1<<i) != 0 {
			parts = append(parts, need)
		}
	}
	return cmp.Or(strings.Join(parts, " and "), "the kernel")
}

// Quote joins arguments with the quotes of a POSIX shell.
func Quote(args []string) string {
	quoted := slices.Clone(args)
	for i, a := range args {
		if a == "" || strings.Trim(a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-") != "" {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

var errTooLong = errors.New("command line too long for a lane (256 arguments, 16 KiB)")

// passed are the variables of tare that commands have.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "XDG_RUNTIME_DIR"}

// Environment returns the environment of commands: more ("NAME=value") and the variables for
// finding programs and folders. Other variables of tare could change the figures: GOMAXPROCS
// and GOGC for runtimes written in Go, NOTIFY_SOCKET and LISTEN_FDS for systemd's protocols.
func Environment(more []string) []string {
	env := slices.Clone(more)
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "LC_") || slices.Contains(passed, name) {
			env = append(env, v)
		}
	}
	return env
}
