package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/record"
)

// State is an engine's view of a container and of its pod.
type State struct {
	Name    string
	ID      string // the pod's if it has no container
	Status  Status
	Said    string // the status in the engine's terms
	Pid     int    // of the first process; 0 for none
	Exit    int    // status of the first process
	Runtime string // "" if the engine does not report it
	Monitor int    // pid of the process that watches the container for the engine; 0 for none
	Group   string // cgroup; "" if the engine does not report it
	Log     string // file of its output; "" for none
	Address string // own address in the engine's network, reachable from this machine; "" for none
	Why     string // the engine's error message; "" for none
	Began   int64  // start time by the engine, ns since 1970; 0 if unknown
	Pod     Pod    // zero for engines without pods

	GroupRequested bool // Group is the one that tare requested
	OOMKilled      bool // a process in it was killed for lack of memory
	ExitUnseen     bool // the engine made up Exit: it did not see the process end
	Remote         bool // its processes are on another machine
	PidUnknown     bool // the engine does not report the pid of a running container
}

// Pod is an engine's view of a pod.
type Pod struct {
	ID     string
	Status Status // running or exited
	Said   string
	Made   int64 // creation time by the engine, ns since 1970; 0 if unknown
}

// Status is the state of a container in its life cycle.
type Status string

// The statuses, common to all engines.
const (
	Created Status = "created"
	Running Status = "running"
	Exited  Status = "exited"
	Other   Status = "other"
	None    Status = "" // no container
)

// statusAfter is the status in which an operation leaves a container.
var statusAfter = map[subject.Op]Status{
	subject.Create: Created, subject.Start: Running, subject.Run: Running, subject.Stop: Exited,
	subject.RunPod: Running, subject.StopPod: Exited,
}

// verify checks the engine's view of a container after an operation that reported success.
// engine names the engine in the failure; stop is the signal that stops the container.
func (s State) verify(engine string, op subject.Op, stop unix.Signal) *record.Failure {
	want := statusAfter[op]
	switch {
	case slices.Contains(subject.PodOps, op):
		if s.Pod.Status != want {
			return contradicted("%s says the pod is %s, not %s", engine, s.Pod.Said, want)
		}
		return nil
	case s.Status == want && want == None:
		return nil
	case s.Status == None:
		return contradicted("%s does not know the container", engine)
	case want == None:
		return contradicted("%s still knows the container", engine)
	case s.Status != want && s.Status == Exited:
		return &record.Failure{Kind: record.FailState, Exit: s.Exit, Output: s.Why,
			Detail: fmt.Sprintf("reported success, but %s says the container is %s, not %s; its process ended with %d", engine, s.Said, want, s.Exit)}
	case s.Status != want:
		return contradicted("%s says the container is %s, not %s", engine, s.Said, want)
	case want == Running && !s.PidUnknown && (s.Pid <= 0 || !s.Remote && !Alive(s.Pid)):
		return &record.Failure{Kind: record.FailState, Output: s.Why,
			Detail: fmt.Sprintf("reported success, and %s says the container runs, but its process %d does not", engine, s.Pid)}
	case op == subject.Stop:
		return s.stopped(engine, stop)
	}
	return nil
}

// stopped checks the exit status of a stopped container's workload against the stop signal.
func (s State) stopped(engine string, stop unix.Signal) (f *record.Failure) {
	switch {
	case s.OOMKilled && s.Exit != 0: // podman sets it for any process of the container
		return &record.Failure{Kind: record.FailWorkload, Exit: s.Exit, Output: s.Why, Detail: "the workload was killed for lack of memory"}
	case s.ExitUnseen:
		f = contradicted("%s did not see how the workload ended: its status %d is the engine's own (%s), not the workload's or the runtime's", engine, s.Exit, cmp.Or(s.Why, "it gives no reason"))
		f.Exit = s.Exit
	default:
		if f = batch.EndedWith(s.Exit, s.Exit > 128 && s.Exit < 128+65, stop); f != nil {
			f.Output = s.Why
		}
	}
	return f
}

// contradicted returns the failure of an operation that reported success without effect.
func contradicted(format string, arguments ...any) *record.Failure {
	return &record.Failure{Kind: record.FailState, Detail: "reported success, but " + fmt.Sprintf(format, arguments...)}
}

// Alive reports whether a process runs. Zombies and killed processes that are still exiting
// do not count.
func Alive(pid int) bool {
	if pid <= 1 || Ended(pid, 0) {
		return false
	}
	s, err := procs.StatOf(pid)
	return err == nil && !s.Dying
}

// Ended waits up to patience for the end of a process that is not tare's child, and reports
// whether it has ended.
func Ended(pid int, patience time.Duration) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	deadline := time.Now().Add(patience)
	for {
		left := max(time.Until(deadline), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if err == nil || time.Now().After(deadline) {
			return n > 0
		}
	}
}
