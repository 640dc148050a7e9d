package tracer

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -output-dir=$BPF_OUT -no-global-types -type event -type slot watch src/watch.c -- -Wall -Werror

// maxCPUs is up to how many CPUs [Event.Busy] is added up: MAX_CPUS of watch.c.
const maxCPUs = 1024

// bpf is the programs of src/watch.c on the tracepoints of the scheduler.
type bpf struct {
	loaded struct {
		watchPrograms
		watchMaps
	}
	cpus    int // that are possible
	links   []link.Link
	reader  *ringbuf.Reader
	q       *queue
	worker  *worker
	flushed chan struct{}
	doubled bool // an exit may be told twice
	broken  atomic.Int64
}

func openBPF(q *queue) (*bpf, error) {
	if err := initialPids(); err != nil {
		return nil, err
	}
	groupDead, err := tellsGroupDead()
	if err != nil {
		return nil, denied(err)
	}
	b, err := loadBPF(q, groupDead)
	if errors.Is(err, unix.EPERM) {
		// Before Linux 5.11 maps count as locked memory.
		restore, limitErr := unlockMemory()
		if limitErr == nil {
			b, err = loadBPF(q, groupDead)
			restore()
		}
	}
	if err != nil {
		return nil, denied(err)
	}
	return b, nil
}

// tellsGroupDead says whether the kernel's sched_process_exit has a second argument,
// whether this was a process's last thread (Linux 6.15).
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

func loadBPF(q *queue, groupDead bool) (_ *bpf, err error) {
	b := &bpf{q: q, flushed: make(chan struct{}, 1), doubled: !groupDead}
	defer func() {
		if err != nil {
			_ = b.close()
		}
	}()
	if err := b.load(groupDead); err != nil {
		return nil, err
	}
	// Switches first, so that a tracked process is seen from its first one. These are
	// raw tracepoints with types (Linux 5.5); they need no tracefs.
	for _, p := range b.programs() {
		l, err := link.AttachTracing(link.TracingOptions{Program: p, AttachType: ebpf.AttachTraceRawTp})
		if err != nil {
			return nil, fmt.Errorf("attach the program %v: %w", p, err)
		}
		b.links = append(b.links, l)
	}
	if b.reader, err = ringbuf.NewReader(b.loaded.TareEvents); err != nil {
		return nil, fmt.Errorf("ring buffer: %w", err)
	}
	b.worker = work(b.read)
	return b, nil
}

// programs are those on tracepoints.
func (b *bpf) programs() []*ebpf.Program {
	p := &b.loaded
	return []*ebpf.Program{p.TareSwitch, p.TareExit, p.TareExec, p.TareFork}
}

// load fits the programs to this machine, and has the kernel take them.
func (b *bpf) load(groupDead bool) error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count the CPUs: %w", err)
	}
	if cpus > maxCPUs {
		return fmt.Errorf("%d CPUs are more than the %d that tare adds up: %w", cpus, maxCPUs, ErrUnsupported)
	}
	var tick unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		return fmt.Errorf("the length of a tick: %w", err)
	}
	spec, err := loadWatch()
	if err != nil {
		return err
	}
	b.cpus = cpus
	spec.Maps[watchMapTareCpus].MaxEntries = uint32(cpus)
	if err := errors.Join(
		spec.Variables[watchVarCpus].Set(uint32(cpus)),
		spec.Variables[watchVarTick].Set(min(tick.Nano(), 1e9)),
		spec.Variables[watchVarGroupDead].Set(groupDead),
	); err != nil {
		return err
	}
	all, err := ebpf.NewCollection(spec)
	if err != nil {
		return err
	}
	defer all.Close() // what is not assigned
	return all.Assign(&b.loaded)
}

// read takes records out of the ring as long as there is one.
func (b *bpf) read() {
	var record ringbuf.Record
	ended := newOnce()
	for {
		err := b.reader.ReadInto(&record)
		switch {
		case errors.Is(err, ringbuf.ErrFlushed):
			b.flush()
			continue
		case err != nil:
			return
		}
		e, born, err := decode(record.RawSample)
		if err != nil {
			b.broken.Add(1)
			continue
		}
		if b.doubled && e.Kind == Exit && !ended.first(e.Pid, born, e.Time) {
			continue
		}
		b.q.add(e)
	}
}

// flush says that the ring was read to its end, unless that was said and nobody
// has heard it yet.
func (b *bpf) flush() {
	select {
	case b.flushed <- struct{}{}:
	default:
	}
}

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL of linux/membarrier.h.
const membarrierGlobal = 1

// drain waits until everything that has happened has been read. A program that
// has taken the time but not handed over its record yet keeps its CPU meanwhile,
// and membarrier(2) returns when every CPU has done something else since.
func (b *bpf) drain(limit time.Duration) error {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		time.Sleep(10 * time.Millisecond)
	}
	select { // of one who did not wait for it to the end
	case <-b.flushed:
	default:
	}
	if err := b.reader.Flush(); err != nil {
		return fmt.Errorf("ring buffer: %w", err)
	}
	select {
	case <-b.flushed:
		return nil
	case <-b.worker.done:
		return fmt.Errorf("ring buffer: %w", os.ErrClosed)
	case <-time.After(limit):
		return fmt.Errorf("ring buffer: not read within %v", limit)
	}
}

// track puts other pids into the map of the tracked, and has every CPU look at
// it once: a process that runs alone may not be switched for long. (Running a
// program on a CPU that is named: Linux 5.10; without it a process counts from
// its next switch.)
func (b *bpf) track(pids []int) error {
	for {
		var pid uint32
		err := b.loaded.TareTracked.NextKey(nil, &pid)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			break
		}
		if err == nil {
			err = b.loaded.TareTracked.Delete(pid)
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("track: %w", err)
		}
	}
	for _, pid := range pids {
		if err := b.loaded.TareTracked.Put(uint32(pid), uint32(1)); err != nil {
			return fmt.Errorf("track process %d: %w", pid, err)
		}
	}
	for cpu := range b.cpus {
		_, _ = b.loaded.TareMark.Run(&ebpf.RunOptions{CPU: uint32(cpu), Flags: unix.BPF_F_TEST_RUN_ON_CPU})
	}
	return nil
}

// places reads every CPU's place.
func (b *bpf) places(f func(watchSlot)) error {
	var place watchSlot
	for cpu := range uint32(b.cpus) {
		if err := b.loaded.TareCpus.Lookup(cpu, &place); err != nil {
			return fmt.Errorf("CPU %d: %w", cpu, err)
		}
		f(place)
	}
	return nil
}

// busy adds the CPUs' places up. A process that goes from one CPU to another
// meanwhile is wrong by as much as that takes, so one of several looks is taken
// that was not interrupted.
func (b *bpf) busy() int64 {
	var sum, took int64
	for try := 0; try == 0 || try < 20 && took > 50_000; try++ {
		begin, looked := now(), int64(0)
		if b.places(func(place watchSlot) {
			looked += place.Busy >> 1
			if place.Busy&1 != 0 {
				looked += begin
			}
		}) != nil {
			return -1
		}
		if t := now() - begin; try == 0 || t < took {
			sum, took = looked, t
		}
	}
	return max(sum, 0)
}

// lost also counts the times at which a program was not run because it ran on
// that CPU already, which the kernel counts since Linux 5.12.
func (b *bpf) lost() int64 {
	sum := b.broken.Load()
	_ = b.places(func(place watchSlot) { sum += int64(place.Lost) })
	for _, p := range b.programs() {
		if stats, err := p.Stats(); err == nil {
			sum += int64(stats.RecursionMisses)
		}
	}
	return sum
}

func (b *bpf) cpu() time.Duration {
	sum := int64(b.worker.cpu())
	_ = b.places(func(place watchSlot) { sum += int64(place.Spent) })
	return time.Duration(sum)
}

func (b *bpf) close() error {
	var errs []error
	for _, l := range b.links {
		errs = append(errs, l.Close())
	}
	if b.reader != nil {
		errs = append(errs, b.reader.Close())
	}
	if b.worker != nil {
		<-b.worker.done
	}
	if b.loaded.TareCpus != nil {
		errs = append(errs, b.loaded.watchPrograms.Close(), b.loaded.watchMaps.Close())
	}
	return errors.Join(errs...)
}
