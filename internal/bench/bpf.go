package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/node/bpfstat"
)

const (
	listedPrograms = 200
	listedMaps     = 2 // of each program
	firstBound     = 1500 * time.Microsecond
	refreshBound   = 500 * time.Microsecond
	listBound      = 0.005 // of a core, at one look a second
	// loopTime is what the bare loop takes on the machine for which the bounds are. On
	// one that is slower, or that others slow down, they are as much further away.
	loopTime = 260 * time.Microsecond
)

// bpf lists many programs with their maps: by a meter that has never looked, by one
// that keeps descriptors, by a loop of the same system calls that makes nothing of
// what they say, and by bpftool, where it is; and lets `tare bpf list --watch` look
// for a while. The bounds are for the time on a CPU of the thread that does it.
func (b *bench) bpf() error {
	loaded, err := loadPrograms()
	defer loaded.close()
	if err != nil {
		return err
	}
	fmt.Printf("%d BPF programs with %d maps, load average %s\n", listedPrograms, listedPrograms*listedMaps, load())
	slower, err := b.listings(loaded.ids)
	if tool, lookErr := exec.LookPath("bpftool"); lookErr == nil && b.ctx.Err() == nil {
		var took []float64
		for range max(5, b.rounds/20) {
			begin := time.Now()
			if text, err := exec.CommandContext(b.ctx, tool, "prog", "show", "-j").Output(); err != nil || len(text) == 0 {
				return fmt.Errorf("bpftool: %w", err)
			}
			took = append(took, float64(time.Since(begin)))
		}
		fmt.Printf("  %-34s %10s, the whole command\n", "bpftool prog show -j", micro(stat.Summarize(took, 0.95).Median))
	} else {
		fmt.Println("  bpftool is not installed, and not compared with")
	}
	return errors.Join(err, b.listWatched(slower))
}

// loadedPrograms are the benchmark's own, which are attached nowhere.
type loadedPrograms struct {
	ids  []uint32
	open []io.Closer
}

func (l *loadedPrograms) close() {
	for _, c := range l.open {
		_ = c.Close()
	}
}

func loadPrograms() (*loadedPrograms, error) {
	l := &loadedPrograms{}
	for i := range listedPrograms {
		var body asm.Instructions
		for j := range listedMaps {
			a, err := ebpf.NewMap(&ebpf.MapSpec{Name: fmt.Sprintf("tare_b%d_%d", i, j), Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
			if err != nil {
				return l, fmt.Errorf("make a map: %w", err)
			}
			l.open = append(l.open, a)
			body = append(body, asm.LoadMapPtr(asm.R1, a.FD()))
		}
		body = append(body, asm.Mov.Imm(asm.R0, 0), asm.Return())
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: fmt.Sprintf("tare_b%d", i), Type: ebpf.SocketFilter, Instructions: body, License: "GPL"})
		if err != nil {
			return l, fmt.Errorf("load a program: %w", err)
		}
		l.open = append(l.open, p)
		known, err := p.Info()
		if err != nil {
			return l, err
		}
		id, _ := known.ID()
		l.ids = append(l.ids, uint32(id))
	}
	return l, nil
}

// way is one of listing programs, and what its rounds took, ns.
type way struct {
	name       string
	do         func() error
	bound      time.Duration
	wall, used []float64
}

// listings times them in turn, and compares with the bounds. slower is how much
// slower this machine is than that of the bounds.
func (b *bench) listings(ids []uint32) (slower float64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	kept, err := bpfstat.Open()
	if err != nil {
		return 1, err
	}
	defer func() { _ = kept.Close() }()
	if _, err := kept.List(bpfstat.Filter{}); err != nil {
		return 1, err
	}
	ways := listingWays(kept, ids)
	for round := range b.rounds {
		for i := range ways {
			w := &ways[i]
			begin, cpu := time.Now(), threadCPU()
			if err := w.do(); err != nil {
				return 1, fmt.Errorf("%s: %w", w.name, err)
			}
			if round > 0 || b.rounds == 1 { // the first finds nothing in the caches
				w.wall, w.used = append(w.wall, float64(time.Since(begin))), append(w.used, float64(threadCPU()-cpu))
			}
		}
		if err := b.ctx.Err(); err != nil {
			return 1, err
		}
	}
	slower = max(1, stat.Summarize(ways[0].used, 0.95).Median/float64(loopTime))
	fmt.Printf("  the machine takes %.2f times as long as that of the bounds\n", slower)
	var errs []error
	for i := range ways {
		errs = append(errs, ways[i].tell(slower))
	}
	return slower, errors.Join(errs...)
}

// listingWays are the bare loop and what is compared with it.
func listingWays(kept *bpfstat.Meter, ids []uint32) []way {
	var counters []bpfstat.Counters
	return []way{
		{name: "a bare loop over programs", do: bareProgramLoop},
		{name: "the first listing of a meter", bound: firstBound, do: func() error {
			m, err := bpfstat.Open()
			if err != nil {
				return err
			}
			l, err := m.List(bpfstat.Filter{})
			if err == nil && (len(l.Programs) < listedPrograms || len(l.Maps) < listedPrograms*listedMaps) {
				err = fmt.Errorf("only %d programs and %d maps are listed", len(l.Programs), len(l.Maps))
			}
			return errors.Join(err, m.Close())
		}},
		{name: "a listing on kept descriptors", bound: refreshBound, do: func() error { _, err := kept.List(bpfstat.Filter{}); return err }},
		{name: "counters on kept descriptors", bound: refreshBound, do: func() (err error) {
			counters, err = kept.Counters(ids, counters)
			if err == nil && len(counters) != len(ids) {
				err = fmt.Errorf("only %d of %d programs told", len(counters), len(ids))
			}
			return err
		}},
	}
}

// tell prints a way, and says where it is beyond its bound.
func (w *way) tell(slower float64) error {
	used := stat.Summarize(w.used, 0.95).Median
	line := fmt.Sprintf("  %-34s %10s of CPU, %10s until it is done", w.name, micro(used), micro(stat.Summarize(w.wall, 0.95).Median))
	if w.bound > 0 {
		line += fmt.Sprintf("; bound: %s × %.2f", micro(float64(w.bound)), slower)
	}
	fmt.Println(line)
	if bound := float64(w.bound) * slower; bound > 0 && used > bound {
		return fmt.Errorf("%s takes %s of CPU, more than %s", w.name, micro(used), micro(bound))
	}
	return nil
}

// bareProgramLoop walks all programs: the next id, a descriptor, its info, and closes it.
func bareProgramLoop() error {
	type ids struct{ id, next, flags uint32 }
	type ask struct {
		fd, size uint32
		info     unsafe.Pointer
	}
	at, into := &ids{}, make([]byte, 232) // struct bpf_prog_info
	for {
		if _, _, errno := unix.RawSyscall(unix.SYS_BPF, unix.BPF_PROG_GET_NEXT_ID, uintptr(unsafe.Pointer(at)), unsafe.Sizeof(*at)); errno != 0 {
			if errno == unix.ENOENT {
				return nil
			}
			return errno
		}
		*at = ids{id: at.next}
		fd, _, errno := unix.RawSyscall(unix.SYS_BPF, unix.BPF_PROG_GET_FD_BY_ID, uintptr(unsafe.Pointer(at)), unsafe.Sizeof(*at))
		if errno != 0 {
			continue // it went
		}
		clear(into)
		a := &ask{fd: uint32(fd), size: uint32(len(into)), info: unsafe.Pointer(unsafe.SliceData(into))}
		_, _, errno = unix.RawSyscall(unix.SYS_BPF, unix.BPF_OBJ_GET_INFO_BY_FD, uintptr(unsafe.Pointer(a)), unsafe.Sizeof(*a))
		_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
		if errno != 0 {
			return errno
		}
	}
}

// listWatched runs tare bpf list --watch on a terminal of its own.
func (b *bench) listWatched(slower float64) error {
	program := filepath.Join(b.dir, "tare")
	build := exec.CommandContext(b.ctx, "go", "build", "-o", program, "./cmd/tare")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s (run from the project's root)", build, err, text)
	}
	tare := exec.CommandContext(b.ctx, program, "bpf", "list", "--watch", "--interval", "1s")
	tare.Env = append(tare.Environ(), "TERM=xterm")
	cpu, took, kib, bytes, err := b.drawn(tare, 200)
	if err != nil {
		return err
	}
	share := float64(cpu) / float64(took)
	fmt.Printf("  %-34s %.2f %% of a core; bound: %.1f %% × %.2f; %d KiB resident, %d KiB drawn\n\n", "tare bpf list --watch, a look a second", 100*share, 100*listBound, slower, kib, bytes>>10)
	if share > listBound*slower {
		return fmt.Errorf("tare bpf list --watch takes %.2f %% of a core, more than %.2f %%", 100*share, 100*listBound*slower)
	}
	return nil
}
