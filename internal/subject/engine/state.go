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

// State is what an engine knows of a container, and of the pod that it is in.
type State struct {
	Name    string
	ID      string // the pod's where there is no container in it
	Status  Status
	Said    string // the status in the engine's own word
	Pid     int    // of its first process, 0 when there is none
	Exit    int    // how that ended
	Runtime string // the runtime that the engine says it uses, "" when it does not say
	Monitor int    // the process that watches it for the engine, 0 when there is none
	Group   string // the cgroup that the engine says it is in, "" when it does not say
	Asked   bool   // Group is the one that tare asked for
	Log     string // the file in which its output is kept, "" when it is not in one
	Address string // its own in the engine's network, as this machine reaches it; "" where it has none
	Why     string // what the engine says went wrong, "" for nothing
	Starved bool   // something in it was killed for lack of memory
	Unseen  bool   // Exit is the engine's own word: it did not see how the process ended
	Afar    bool   // its processes are not this machine's
	Untold  bool   // the engine does not tell its process
	Began   int64  // when the engine says it was started, ns since 1970; 0 when it does not say
	Pod     Pod    // no pod for engines that have none
}

// Pod is what an engine knows of a pod.
type Pod struct {
	ID     string
	Status Status // running or exited
	Said   string
	Made   int64 // when the engine says it was made, ns since 1970; 0 when it does not say
}

// Status is where a container is in its life.
type Status string

// The statuses, whatever engines call them.
const (
	Created Status = "created"
	Running Status = "running"
	Exited  Status = "exited"
	Other   Status = "other"
	None    Status = "" // there is no container
)

// after is the status in which an operation leaves a container.
var after = map[subject.Op]Status{
	subject.Create: Created, subject.Start: Running, subject.Run: Running, subject.Stop: Exited,
	subject.RunPod: Running, subject.StopPod: Exited,
}

// verify holds what an engine knows of a container against the operation that
// it reported as done. engine names it in the failure's text, and told is the signal
// that stops it.
func (s State) verify(engine string, op subject.Op, told unix.Signal) *record.Failure {
	want := after[op]
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
		return &record.Failure{Kind: record.FailState,
			Detail: fmt.Sprintf("reported success, but %s says the container is %s, not %s", engine, s.Said, want)}
	case want == Running && !s.Untold && (s.Pid <= 0 || !s.Afar && !Alive(s.Pid)):
		return &record.Failure{Kind: record.FailState, Output: s.Why,
			Detail: fmt.Sprintf("reported success, and %s says the container runs, but its process %d does not", engine, s.Pid)}
	case op == subject.Stop:
		return s.stopped(engine, told)
	}
	return nil
}

// stopped holds how the workload of a container that was stopped ended against the signal
// that it was told by.
func (s State) stopped(engine string, told unix.Signal) (f *record.Failure) {
	switch {
	case s.Starved && s.Exit != 0: // podman says so, too, where it was another process of the container
		return &record.Failure{Kind: record.FailWorkload, Exit: s.Exit, Output: s.Why, Detail: "the workload was killed for lack of memory"}
	case s.Unseen:
		f = contradicted("%s did not see how the workload ended: its status %d is the engine's own (%s), and none of the workload or the runtime", engine, s.Exit, cmp.Or(s.Why, "it gives no reason"))
		f.Exit = s.Exit
	default:
		if f = batch.EndedWith(s.Exit, s.Exit > 128 && s.Exit < 128+65, told); f != nil {
			f.Output = s.Why
		}
	}
	return f
}

// contradicted is the failure of an operation that an engine reported as done,
// and whose effect is not to be seen.
func contradicted(format string, arguments ...any) *record.Failure {
	return &record.Failure{Kind: record.FailState, Detail: "reported success, but " + fmt.Sprintf(format, arguments...)}
}

// Alive reports whether a process runs. One that ended and was not waited for
// does not, nor one that was killed and whose threads have not all gone yet.
func Alive(pid int) bool {
	if pid <= 1 || Ended(pid, 0) {
		return false
	}
	s, err := procs.StatOf(pid)
	return err == nil && !s.Dying
}

// Ended waits for the end of a process that is not a child of tare's, at most
// for the given time.
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
