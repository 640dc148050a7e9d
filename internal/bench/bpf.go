package main

import (
	"fmt"
	"io"
	"os/exec"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

const (
	listedPrograms = 200
	listedMaps     = 2     // of each program
	listBound      = 0.005 // of a core, at one look a second
)

// bpf lets tare bpf list --watch look at many programs for a while. What one look
// takes beside a bare loop, the benchmarks of node/bpfstat tell.
func (b *bench) bpf() error {
	loaded, err := loadPrograms()
	defer loaded.close()
	if err != nil {
		return err
	}
	fmt.Printf("%d BPF programs with %d maps, load average %s\n", listedPrograms, listedPrograms*listedMaps, load())
	return b.listWatched()
}

// loadedPrograms are the benchmark's own, which are attached nowhere.
type loadedPrograms struct {
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
	}
	return l, nil
}

// listWatched runs tare bpf list --watch on a terminal of its own.
func (b *bench) listWatched() error {
	program, err := b.buildTare()
	if err != nil {
		return err
	}
	tare := exec.CommandContext(b.ctx, program, "bpf", "list", "--watch", "--interval", "1s")
	tare.Env = append(tare.Environ(), "TERM=xterm")
	cpu, took, kib, bytes, err := b.drawn(tare, 200)
	if err != nil {
		return err
	}
	share := float64(cpu) / float64(took)
	fmt.Printf("  %-34s %.2f %% of a core; bound: %.1f %%; %d KiB resident, %d KiB drawn\n\n", "tare bpf list --watch, a look a second", 100*share, 100*listBound, kib, bytes>>10)
	return nil
}
