// Package tracer tells of the birth, the programs and the death of every process
// of the machine, on the host's CLOCK_MONOTONIC.
//
// The kernel tells by BPF programs on its raw tracepoints, which needs Linux 5.8 with
// BTF. Whose a process is, is not decided here.
package tracer

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Kind is what happened.
type Kind uint8

// What can happen.
const (
	Fork Kind = iota + 1 // a process, not a thread, was born
	Exec                 // a process executed a program
	Exit                 // the last thread of a process ended
)

// Event is one thing that happened to a process. Pids are those of the process
// (tgid) in the tracer's own pid namespace.
type Event struct {
	Kind   Kind
	Time   int64 // ns, CLOCK_MONOTONIC
	Pid    int
	Parent int      // who forked it; of Exec and Exit the parent at that time, 0 where it is not known
	Comm   string   // the thread's name, up to 15 bytes; of Exec the new one
	File   string   // of Exec: what was executed, as it was called
	Args   []string // of Exec: the arguments, cut as Cut says
	CNI    CNI      // of Exec: what a network plugin is told by its environment; nothing else of it is kept
	Cut    bool     // Args are not complete
	CPU    int64    // of Exec and Exit: ns of CPU time that the process has used so far; -1 not known
	Status int      // of Exit: exit code, 128+n for signal n; -1 not known
	// Busy is the CPU time (ns) that the tracked processes have used since Open, of
	// whatever runs at that moment too; -1 not known. It is by the clock: what
	// interrupts and the hypervisor take of a process is in it. A process that is
	// born or tracked counts from its next switch at the latest.
	Busy int64
}

// CNI is what a plugin's environment says. See the CNI specification, section 2.
type CNI struct {
	Command   string // ADD, DEL, CHECK, VERSION, GC, STATUS
	Container string // CNI_CONTAINERID
	Interface string // CNI_IFNAME
}

// ErrUnsupported is wrapped by errors about what this machine does not have,
// whoever asks and whatever for.
var ErrUnsupported = errors.New("not supported here")

// Tracer is told of every process from Open to Close. Its methods may be called
// at the same time.
type Tracer struct {
	queue  *queue
	source *bpf

	taking sync.Mutex   // one at a time
	life   sync.RWMutex // Close waits for whoever uses the source
	closed bool
	failed error // what Close said
	last   last  // what was known when it was closed
}

// last is what a tracer still says when it is closed.
type last struct {
	busy, lost int64
	cpu        time.Duration
}

// Open begins. It wants root, or CAP_BPF and CAP_PERFMON. The error says why the
// kernel does not let it, and wraps [ErrUnsupported] if it would let nobody.
func Open() (*Tracer, error) {
	q := &queue{}
	b, err := openBPF(q)
	if err != nil {
		return nil, fmt.Errorf("watch processes: %w", err)
	}
	return &Tracer{queue: q, source: b}, nil
}

// Check says why processes cannot be watched here, or nothing.
func Check() error {
	t, err := Open()
	if err != nil {
		return err
	}
	return t.Close()
}

// Track says whose CPU time counts into [Event.Busy]: that of these processes,
// and of all descendants that they have from now on. Others that did count no
// longer do; what they have used stays in.
func (t *Tracer) Track(pids ...int) error {
	for _, pid := range pids {
		if pid <= 0 || pid > maxPid {
			return fmt.Errorf("track process %d: there is no such pid", pid)
		}
	}
	t.life.RLock()
	defer t.life.RUnlock()
	if t.closed {
		return errClosed
	}
	return t.source.track(pids)
}

// errClosed is what a tracer says that is closed.
var errClosed = fmt.Errorf("the tracer of processes is closed: %w", os.ErrClosed)

// Busy is what tracked processes have used until now since Open, in ns of CPU
// time; -1 where the kernel does not answer.
func (t *Tracer) Busy() int64 {
	t.life.RLock()
	defer t.life.RUnlock()
	if t.closed {
		return t.last.busy
	}
	return t.source.busy()
}

// patience is how long Take waits at most.
const patience = 200 * time.Millisecond

// Take hands over all that happened up to a point of CLOCK_MONOTONIC (ns) and
// was not taken before, in order of time. It waits for that point, and until
// what happened before it has arrived, but not longer than 200 ms. What arrives
// later still is in the next one. An error says that it could not be waited for;
// what is there is handed over with it, also when the tracer is closed, which it
// then says (it wraps [os.ErrClosed]).
func (t *Tracer) Take(until int64) ([]Event, error) {
	t.taking.Lock()
	defer t.taking.Unlock()
	t.life.RLock()
	defer t.life.RUnlock()
	if t.closed {
		return t.queue.take(until), errClosed
	}
	wait := max(min(time.Duration(until-now()), patience/2), 0)
	time.Sleep(wait)
	err := t.source.drain(patience - wait)
	return t.queue.take(until), err
}

// Lost is how many events since Open the kernel could not hand over, or this
// package could not read or keep.
func (t *Tracer) Lost() int64 {
	t.life.RLock()
	defer t.life.RUnlock()
	if t.closed {
		return t.last.lost
	}
	return t.source.lost() + t.queue.lost()
}

// CPU is the CPU time that watching has taken since Open: of the thread that
// reads, and of BPF programs from their first to their last look at the clock, on
// all CPUs and whoever they interrupt. Not in it is what Open, Take and Close take
// of their callers, and the kernel's way into a program and out of it, some tens of
// ns each time (its own statistics, which time that too and themselves, say twice as
// much).
func (t *Tracer) CPU() time.Duration {
	t.life.RLock()
	defer t.life.RUnlock()
	if t.closed {
		return t.last.cpu
	}
	return t.source.cpu()
}

// Close ends it, and removes all that it has put into the kernel. It waits for a
// Take that is under way.
func (t *Tracer) Close() error {
	t.life.Lock()
	defer t.life.Unlock()
	if !t.closed {
		t.last = last{t.source.busy(), t.source.lost() + t.queue.lost(), t.source.cpu()}
		t.closed, t.failed = true, t.source.close()
	}
	return t.failed
}
