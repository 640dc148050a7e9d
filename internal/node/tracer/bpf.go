package tracer

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// ringSize is what the buffer holds (bytes). An exec takes 1 to 4 KiB of it with
// its arguments and environment, a fork or an exit 80 bytes; a container's start
// makes a dozen of each. So 200 starts at once fit, even if nobody reads
// meanwhile, and a reader is called when a quarter is full.
const ringSize = 8 << 20

// maxTracked is how many processes can be tracked at once.
const maxTracked = 16384

// maxCPUs is up to how many CPUs [Event.Busy] is added up.
const maxCPUs = 1024

// license: the kernel lends its helpers to programs that are under the GPL, too.
// What this package writes is instructions of its own, and whoever wants them
// may have them under it.
const license = "Dual MIT/GPL"

// bpf is programs on the tracepoints of the scheduler.
type bpf struct {
	maps     maps
	mark     *ebpf.Program
	programs []*ebpf.Program
	links    []link.Link
	reader   *ringbuf.Reader
	q        *queue
	worker   *worker
	flushed  chan struct{}
	doubled  bool // an exit may be told twice
	broken   atomic.Int64
}

func openBPF(q *queue) (*bpf, error) {
	if err := initialPids(); err != nil {
		return nil, err
	}
	k, err := describe()
	if err != nil {
		return nil, err
	}
	b, err := loadBPF(q, k)
	if errors.Is(err, unix.EPERM) {
		// Before Linux 5.11 maps count as locked memory.
		restore, limitErr := unlockMemory()
		if limitErr == nil {
			b, err = loadBPF(q, k)
			restore()
		}
	}
	if err != nil {
		return nil, denied(err)
	}
	return b, nil
}

func loadBPF(q *queue, k *kernel) (_ *bpf, err error) {
	b := &bpf{q: q, flushed: make(chan struct{}, 1), doubled: !k.groupDead}
	defer func() {
		if err != nil {
			_ = b.close()
		}
	}()
	if err := b.makeMaps(); err != nil {
		return nil, err
	}
	b.mark, err = ebpf.NewProgramWithOptions(&ebpf.ProgramSpec{
		Name: "tare_mark", Type: ebpf.RawTracepoint, License: license, Instructions: onMark(k, &b.maps),
	}, ebpf.ProgramOptions{})
	if err != nil {
		return nil, fmt.Errorf("load the program that marks: %w", err)
	}
	// Switches first, so that a tracked process is seen from its first one.
	for _, one := range []struct {
		tracepoint string
		write      func(*kernel, *maps) asm.Instructions
	}{
		{"sched_switch", onSwitch},
		{"sched_process_exit", onExit},
		{"sched_process_exec", onExec},
		{"sched_process_fork", onFork},
	} {
		if err := b.attach(one.tracepoint, one.write(k, &b.maps)); err != nil {
			return nil, fmt.Errorf("%s: %w", one.tracepoint, err)
		}
	}
	if b.reader, err = ringbuf.NewReader(b.maps.events); err != nil {
		return nil, fmt.Errorf("ring buffer: %w", err)
	}
	b.worker = work(b.read)
	return b, nil
}

func (b *bpf) makeMaps() error {
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
	b.maps.n, b.maps.tick = cpus, min(tick.Nano(), 1e9)
	for _, one := range []struct {
		to   **ebpf.Map
		spec ebpf.MapSpec
	}{
		{&b.maps.cpus, ebpf.MapSpec{Name: "tare_cpus", Type: ebpf.Array, KeySize: 4, ValueSize: slotSize, MaxEntries: uint32(cpus)}},
		{&b.maps.tracked, ebpf.MapSpec{Name: "tare_tracked", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: maxTracked}},
		{&b.maps.events, ebpf.MapSpec{Name: "tare_events", Type: ebpf.RingBuf, MaxEntries: ringSize}},
		{&b.maps.scratch, ebpf.MapSpec{Name: "tare_exec", Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: scratch, MaxEntries: 1}},
	} {
		if *one.to, err = ebpf.NewMap(&one.spec); err != nil {
			return fmt.Errorf("make the map %s: %w", one.spec.Name, err)
		}
	}
	return nil
}

// attach loads a program for a tracepoint and attaches it. These are raw
// tracepoints with types (Linux 5.5); they need no tracefs.
func (b *bpf) attach(tracepoint string, ins asm.Instructions) error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "tare_" + strings.TrimPrefix(strings.TrimPrefix(tracepoint, "sched_"), "process_"),
		Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: tracepoint,
		License: license, Instructions: ins,
	})
	if err != nil {
		return fmt.Errorf("load the program: %w", err)
	}
	b.programs = append(b.programs, p)
	l, err := link.AttachTracing(link.TracingOptions{Program: p, AttachType: ebpf.AttachTraceRawTp})
	if err != nil {
		return fmt.Errorf("attach the program: %w", err)
	}
	b.links = append(b.links, l)
	return nil
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
		err := b.maps.tracked.NextKey(nil, &pid)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			break
		}
		if err == nil {
			err = b.maps.tracked.Delete(pid)
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("track: %w", err)
		}
	}
	for _, pid := range pids {
		if err := b.maps.tracked.Put(uint32(pid), uint32(1)); err != nil {
			return fmt.Errorf("track process %d: %w", pid, err)
		}
	}
	for cpu := range b.maps.n {
		_, _ = b.mark.Run(&ebpf.RunOptions{CPU: uint32(cpu), Flags: unix.BPF_F_TEST_RUN_ON_CPU})
	}
	return nil
}

// places reads every CPU's place.
func (b *bpf) places(f func(place []byte)) error {
	place := make([]byte, slotSize)
	for cpu := range b.maps.n {
		if err := b.maps.cpus.Lookup(uint32(cpu), &place); err != nil {
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
		if b.places(func(place []byte) {
			v := int64(native.Uint64(place[slotBusy:]))
			looked += v >> 1
			if v&1 != 0 {
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
	_ = b.places(func(place []byte) { sum += int64(native.Uint64(place[slotLost:])) })
	for _, p := range b.programs {
		if stats, err := p.Stats(); err == nil {
			sum += int64(stats.RecursionMisses)
		}
	}
	return sum
}

func (b *bpf) cpu() time.Duration {
	sum := int64(b.worker.cpu())
	_ = b.places(func(place []byte) { sum += int64(native.Uint64(place[slotSpent:])) })
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
	for _, p := range append(b.programs, b.mark) {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	for _, m := range []*ebpf.Map{b.maps.cpus, b.maps.tracked, b.maps.events, b.maps.scratch} {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}
