package tracer

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"structs"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -output-dir=$BPF_OUT -no-global-types watch src/watch.c -- -Wall -Werror
//go:generate sh -c "rm ${DOLLAR}{BPF_OUT:-.}/watch_bpfel.go"

// object is the compiled src/watch.c. The Go code of bpf2go is not needed: a test compares
// the types below with the object.
//
//go:embed watch_bpfel.o
var object []byte

// watchEvent is struct event of src/watch.c.
type watchEvent struct {
	_      structs.HostLayout
	Kind   uint32
	Pid    uint32
	Parent uint32
	Status uint32
	Time   uint64
	Cpu    int64
	Busy   int64
	Start  uint64
	Comm   [16]uint8
	File   uint16
	Args   uint16
	Env    uint16
	Flags  uint16
}

// watchSlot is struct slot of src/watch.c.
type watchSlot struct {
	_      structs.HostLayout
	Busy   int64
	Offset uint64
	Spent  uint64
	Lost   uint64
	Line   [4]uint64
}

// maxCPUs is MAX_CPUS of watch.c, the limit for [Event.Busy].
const maxCPUs = 1024

// tellsGroupDead reports whether the kernel's sched_process_exit has a second argument:
// whether this was the last thread of a process (Linux 6.15).
func tellsGroupDead() (bool, error) {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return false, fmt.Errorf("the kernel does not describe its own structs (BTF): use one with CONFIG_DEBUG_INFO_BTF: %w", err)
	}
	var exit *btf.Typedef
	if err := spec.TypeByName("btf_trace_sched_process_exit", &exit); err != nil {
		return false, fmt.Errorf("the kernel's BTF: %w", err)
	}
	if p, ok := btf.UnderlyingType(exit).(*btf.Pointer); ok {
		if f, ok := p.Target.(*btf.FuncProto); ok {
			return len(f.Params) >= 3, nil // the first is the tracepoint's own data
		}
	}
	return false, nil
}

// open attaches the programs of src/watch.c to the tracepoints of the scheduler and
// starts to read their events.
func open(groupDead bool) (_ *Tracer, err error) {
	t := &Tracer{flushed: make(chan struct{}, 1), doubled: !groupDead}
	defer func() {
		if err != nil {
			_ = t.Close()
		}
	}()
	if err := t.load(groupDead); err != nil {
		return nil, err
	}
	// Attach to switches first, so a tracked process counts from its first one. Raw
	// tracepoints with types (Linux 5.5) need no tracefs.
	for _, p := range t.programs() {
		l, err := link.AttachTracing(link.TracingOptions{Program: p, AttachType: ebpf.AttachTraceRawTp})
		if err != nil {
			return nil, fmt.Errorf("attach the program %v: %w", p, err)
		}
		t.links = append(t.links, l)
	}
	if t.reader, err = ringbuf.NewReader(t.loaded.Maps["tare_events"]); err != nil {
		return nil, fmt.Errorf("ring buffer: %w", err)
	}
	t.worker = work(t.read)
	return t, nil
}

// programs returns the programs for tracepoints.
func (t *Tracer) programs() []*ebpf.Program {
	p := t.loaded.Programs
	return []*ebpf.Program{p["tare_switch"], p["tare_exit"], p["tare_exec"], p["tare_fork"]}
}

// load adapts the programs to this machine and loads them.
func (t *Tracer) load(groupDead bool) error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count the CPUs: %w", err)
	}
	if cpus > maxCPUs {
		return fmt.Errorf("%d CPUs are more than the %d that tare adds up: %w", cpus, maxCPUs, errUnsupported)
	}
	var tick unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		return fmt.Errorf("the length of a tick: %w", err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return fmt.Errorf("read the embedded programs: %w", err)
	}
	t.cpus = cpus
	spec.Maps["tare_cpus"].MaxEntries = uint32(cpus)
	if err := errors.Join(
		spec.Variables["cpus"].Set(uint32(cpus)),
		spec.Variables["tick"].Set(min(tick.Nano(), 1e9)),
		spec.Variables["group_dead"].Set(groupDead),
	); err != nil {
		return err
	}
	t.loaded, err = ebpf.NewCollection(spec)
	return err
}

// read reads records from the ring until the tracer ends.
func (t *Tracer) read() {
	var record ringbuf.Record
	ended := newOnce()
	for {
		err := t.reader.ReadInto(&record)
		switch {
		case errors.Is(err, ringbuf.ErrFlushed):
			select {
			case t.flushed <- struct{}{}:
			default: // an earlier report is pending
			}
			continue
		case err != nil:
			return
		}
		e, born, err := decode(record.RawSample)
		if err != nil {
			t.broken.Add(1)
			continue
		}
		if t.doubled && e.Kind == Exit && !ended.first(e.Pid, born, e.Time) {
			continue
		}
		t.queue.add(e)
	}
}

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL of linux/membarrier.h.
const membarrierGlobal = 1

// drain waits until all past events have been read. A program that has read the clock
// but not yet submitted its record still occupies its CPU, and membarrier(2) returns
// after every CPU has switched.
func (t *Tracer) drain(limit time.Duration) error {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		time.Sleep(10 * time.Millisecond)
	}
	select { // discard the report of an earlier drain that timed out
	case <-t.flushed:
	default:
	}
	if err := t.reader.Flush(); err != nil {
		return fmt.Errorf("ring buffer: %w", err)
	}
	select {
	case <-t.flushed:
		return nil
	case <-t.worker.done:
		return fmt.Errorf("ring buffer: %w", os.ErrClosed)
	case <-time.After(limit):
		return fmt.Errorf("ring buffer: not read within %v", limit)
	}
}

// places reads the slot of every CPU.
func (t *Tracer) places(f func(watchSlot)) error {
	var place watchSlot
	for cpu := range uint32(t.cpus) {
		if err := t.loaded.Maps["tare_cpus"].Lookup(cpu, &place); err != nil {
			return fmt.Errorf("CPU %d: %w", cpu, err)
		}
		f(place)
	}
	return nil
}
