// Package tracer tells of the birth, the programs and the death of every process
// of the machine, on the host's CLOCK_MONOTONIC.
//
// The kernel tells by BPF programs on its raw tracepoints, which needs Linux 5.8 with
// BTF. Whose a process is, is not decided here.
package tracer

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
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

// errUnsupported is wrapped by errors about what this machine does not have,
// whoever asks and whatever for.
var errUnsupported = errors.New("not supported here")

// Tracer is told of every process from Open to Close. It is for one goroutine: what
// the kernel tells meanwhile waits in its queue.
type Tracer struct {
	loaded  watched
	cpus    int // that are possible
	links   []link.Link
	reader  *ringbuf.Reader
	queue   queue
	worker  *worker
	flushed chan struct{}
	doubled bool // an exit may be told twice
	broken  atomic.Int64
}

// Open begins. It wants root, or CAP_BPF and CAP_PERFMON. The error says why the
// kernel does not let it, and wraps [errUnsupported] if it would let nobody.
func Open() (*Tracer, error) {
	if err := initialPids(); err != nil {
		return nil, fmt.Errorf("watch processes: %w", err)
	}
	groupDead, err := tellsGroupDead()
	var t *Tracer
	if err == nil {
		t, err = open(groupDead)
	}
	if errors.Is(err, unix.EPERM) { // before Linux 5.11 maps count as locked memory
		if restore, limitErr := unlockMemory(); limitErr == nil {
			t, err = open(groupDead)
			restore()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("watch processes: %w", denied(err))
	}
	return t, nil
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
//
// Every CPU is had to look at it once: a process that runs alone may not be switched
// for long. (Running a program on a CPU that is named: Linux 5.10; without it a
// process counts from its next switch.)
func (t *Tracer) Track(pids ...int) error {
	for _, pid := range pids {
		if pid <= 0 || pid > procs.MaxPid {
			return fmt.Errorf("track process %d: there is no such pid", pid)
		}
	}
	for {
		var pid uint32
		err := t.loaded.TareTracked.NextKey(nil, &pid)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			break
		}
		if err == nil {
			err = t.loaded.TareTracked.Delete(pid)
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("track: %w", err)
		}
	}
	for _, pid := range pids {
		if err := t.loaded.TareTracked.Put(uint32(pid), uint32(1)); err != nil {
			return fmt.Errorf("track process %d: %w", pid, err)
		}
	}
	for cpu := range t.cpus {
		_, _ = t.loaded.TareMark.Run(&ebpf.RunOptions{CPU: uint32(cpu), Flags: unix.BPF_F_TEST_RUN_ON_CPU})
	}
	return nil
}

// Busy is what tracked processes have used until now since Open, in ns of CPU
// time; -1 where the kernel does not answer.
//
// It adds the CPUs' places up. A process that goes from one CPU to another meanwhile
// is wrong by as much as that takes, so one of several looks is taken that was not
// interrupted.
func (t *Tracer) Busy() int64 {
	var sum, took int64
	for try := 0; try == 0 || try < 20 && took > 50_000; try++ {
		begin, looked := now(), int64(0)
		if t.places(func(place watchSlot) {
			looked += place.Busy >> 1
			if place.Busy&1 != 0 {
				looked += begin
			}
		}) != nil {
			return -1
		}
		if d := now() - begin; try == 0 || d < took {
			sum, took = looked, d
		}
	}
	return max(sum, 0)
}

// maxUsed is of how many tracked processes Used tells.
const maxUsed = 1024

// Used is what each tracked process that is there has used since it was born, in ns of
// CPU time by its pid, as its own clock says. It may be asked beside Take.
func (t *Tracer) Used() map[int]int64 {
	all := map[int]int64{}
	var pid, one uint32
	for it := t.loaded.TareTracked.Iterate(); len(all) < maxUsed && it.Next(&pid, &one); {
		if cpu, ok := procs.Clock(int(pid)); ok {
			all[int(pid)] = cpu
		}
	}
	return all
}

// patience is how long Take waits at most.
const patience = 200 * time.Millisecond

// Take hands over all that happened up to a point of CLOCK_MONOTONIC (ns) and
// was not taken before, in order of time. It waits for that point, and until
// what happened before it has arrived, but not longer than 200 ms. What arrives
// later still is in the next one. An error says that it could not be waited for;
// what is there is handed over with it.
func (t *Tracer) Take(until int64) ([]Event, error) {
	wait := max(min(time.Duration(until-now()), patience/2), 0)
	time.Sleep(wait)
	err := t.drain(patience - wait)
	return t.queue.take(until), err
}

// Lost is how many events since Open the kernel could not hand over, or this
// package could not read or keep. The times at which a program was not run because
// it ran on that CPU already are counted by kernels since Linux 5.12.
func (t *Tracer) Lost() int64 {
	sum := t.broken.Load() + t.queue.lost()
	_ = t.places(func(place watchSlot) { sum += int64(place.Lost) })
	for _, p := range t.programs() {
		if stats, err := p.Stats(); err == nil {
			sum += int64(stats.RecursionMisses)
		}
	}
	return sum
}

// CPU is the CPU time that watching has taken since Open: of the thread that
// reads, and of BPF programs from their first to their last look at the clock, on
// all CPUs and whoever they interrupt. Not in it is what Open, Take and Close take
// of their callers, and the kernel's way into a program and out of it, some tens of
// ns each time (its own statistics, which time that too and themselves, say twice as
// much).
func (t *Tracer) CPU() time.Duration {
	sum := int64(t.worker.cpu())
	_ = t.places(func(place watchSlot) { sum += int64(place.Spent) })
	return time.Duration(sum)
}

// Close ends it, and removes all that it has put into the kernel. To close it twice
// does nothing.
func (t *Tracer) Close() error {
	var errs []error
	for _, l := range t.links {
		errs = append(errs, l.Close())
	}
	if t.links = nil; t.reader != nil {
		errs = append(errs, t.reader.Close())
	}
	if t.worker != nil {
		<-t.worker.done
	}
	if t.loaded.TareCpus != nil {
		errs = append(errs, t.loaded.Close())
	}
	return errors.Join(errs...)
}
