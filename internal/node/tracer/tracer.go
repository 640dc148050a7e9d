// Package tracer reports forks, execs and exits of all processes of the machine by the
// host's CLOCK_MONOTONIC.
//
// It uses BPF programs on raw tracepoints, which need Linux 5.8 with BTF. It does not
// assign processes to sandboxes.
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

// Kind is the kind of an event.
type Kind uint8

// The kinds of events.
const (
	Fork Kind = iota + 1 // a process, not a thread, was born
	Exec                 // a process executed a program
	Exit                 // the last thread of a process ended
)

// Event is an event of a process. Pids are process ids (tgid) in the tracer's pid
// namespace.
type Event struct {
	Kind   Kind
	Time   int64 // ns, CLOCK_MONOTONIC
	Pid    int
	Parent int      // parent that forked the process; in Exec and Exit its parent at that time; 0: unknown
	Comm   string   // name of the thread, up to 15 bytes; in Exec the new one
	File   string   // Exec only: the executed file, as named in the call
	Args   []string // Exec only: the arguments
	CNI    CNI      // Exec only: variables of a network plugin; no other variables are kept
	Cut    bool     // Args are truncated
	CPU    int64    // Exec and Exit only: CPU time of the process so far in ns; -1: unknown
	Status int      // Exit only: exit code, 128+n for signal n; -1: unknown
	// Busy is the CPU time (ns) of the tracked processes since Open, including running
	// ones; -1 if unknown. It is wall time on a CPU, so it includes interrupts and
	// steal. A new or newly tracked process counts from its next switch at the latest.
	Busy int64
}

// CNI are the variables of a network plugin, see the CNI specification, section 2.
type CNI struct {
	Command   string // ADD, DEL, CHECK, VERSION, GC, STATUS
	Container string // CNI_CONTAINERID
	Interface string // CNI_IFNAME
}

// errUnsupported is wrapped by errors about missing features of this machine.
var errUnsupported = errors.New("not supported here")

// Tracer reports events from Open to Close. One goroutine may use it. Events wait in a
// queue until Take.
type Tracer struct {
	loaded  *ebpf.Collection // src/watch.c
	cpus    int              // number of possible CPUs
	links   []link.Link
	reader  *ringbuf.Reader
	queue   queue
	worker  *worker
	flushed chan struct{}
	doubled bool // an exit can have two events
	broken  atomic.Int64
}

// Open starts tracing. It needs root, or CAP_BPF and CAP_PERFMON. The error wraps
// [errUnsupported] if the machine does not support tracing for any user.
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

// Check returns an error if processes cannot be traced here.
func Check() error {
	t, err := Open()
	if err != nil {
		return err
	}
	return t.Close()
}

// Track sets the processes that count for [Event.Busy]: these, and all descendants from
// now on. Processes that were tracked before no longer count; their past time stays
// included.
//
// Every CPU has to process the change once, because a process that is alone on its CPU may
// run for long without a switch. Running a program on a given CPU needs Linux 5.10; without
// it a process counts from its next switch.
func (t *Tracer) Track(pids ...int) error {
	for _, pid := range pids {
		if pid <= 0 || pid > procs.MaxPid {
			return fmt.Errorf("track process %d: invalid pid", pid)
		}
	}
	tracked := t.loaded.Maps["tare_tracked"]
	for {
		var pid uint32
		err := tracked.NextKey(nil, &pid)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			break
		}
		if err == nil {
			err = tracked.Delete(pid)
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("track: %w", err)
		}
	}
	for _, pid := range pids {
		if err := tracked.Put(uint32(pid), uint32(1)); err != nil {
			return fmt.Errorf("track process %d: %w", pid, err)
		}
	}
	for cpu := range t.cpus {
		_, _ = t.loaded.Programs["tare_mark"].Run(&ebpf.RunOptions{CPU: uint32(cpu), Flags: unix.BPF_F_TEST_RUN_ON_CPU})
	}
	return nil
}

// Busy returns the CPU time (ns) of tracked processes since Open, or -1 if the kernel
// does not answer.
//
// It adds the slots of all CPUs. A process that migrates during a reading causes an error as
// large as the duration of the reading. So Busy uses the shortest of several readings.
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

// maxUsed is the largest number of tracked processes in Used.
const maxUsed = 1024

// Used returns the CPU time (ns) of each tracked process since its start, by pid, from
// the process's CPU clock. It is safe to call concurrently with Take.
func (t *Tracer) Used() map[int]int64 {
	all := map[int]int64{}
	var pid, one uint32
	for it := t.loaded.Maps["tare_tracked"].Iterate(); len(all) < maxUsed && it.Next(&pid, &one); {
		if cpu, ok := procs.Clock(int(pid)); ok {
			all[int(pid)] = cpu
		}
	}
	return all
}

// patience is the longest wait of Take.
const patience = 200 * time.Millisecond

// Take returns all events up to a time of CLOCK_MONOTONIC (ns) that were not taken
// before, in order of time. It waits until that time and until earlier events have
// arrived, for at most 200 ms. Later arrivals are in the next result. With an error it
// returns the events that have arrived.
func (t *Tracer) Take(until int64) ([]Event, error) {
	wait := max(min(time.Duration(until-now()), patience/2), 0)
	time.Sleep(wait)
	err := t.drain(patience - wait)
	return t.queue.take(until), err
}

// Lost returns the number of events since Open that the kernel or this package dropped.
// Since Linux 5.12 it includes events of a program that was skipped because it already ran
// on that CPU.
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

// CPU returns the CPU time of tracing since Open. It includes the reading thread, and the
// BPF programs on all CPUs between their first and last reading of the clock. It does not
// include Open, Take and Close, nor the kernel's entry to and exit from a program, some tens
// of ns each. The kernel's BPF statistics show twice as much, because they include that time
// and their own cost.
func (t *Tracer) CPU() time.Duration {
	sum := int64(t.worker.cpu())
	_ = t.places(func(place watchSlot) { sum += int64(place.Spent) })
	return time.Duration(sum)
}

// Close ends tracing and removes the programs. Further calls do nothing.
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
	if t.loaded != nil {
		t.loaded.Close()
		t.loaded.Variables = nil // they keep their map in the kernel
	}
	return errors.Join(errs...)
}
