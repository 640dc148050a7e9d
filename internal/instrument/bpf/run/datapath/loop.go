package datapath

import (
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// MaxHeavy is how many rounds one run of a program can do, where the kernel has
// bpf_loop: two calls of it. One round takes from 1.5 to 10 ns, by the processor and
// by how the kernel calls back; TestRun says it.
const MaxHeavy = 2 * maxLoop

// maxLoop is how often bpf_loop calls back at most (BPF_MAX_LOOPS of
// linux/bpf_verifier.h).
const maxLoop = 1 << 23

// The loop that the verifier walks through: what is between two decisions, and
// up to where. The verifier gives up after a million instructions, or with 8192
// decisions put off.
const (
	walkedBlock = 16
	maxWalked   = 4096 * walkedBlock
)

// loop is a way to do work for a given number of rounds.
type loop interface {
	rounds() asm.Instructions    // does R7 rounds on what is at onState; R6 stays
	functions() asm.Instructions // that it calls, to be put behind a program
	most() int64
}

// work is the name of the function that bpf_loop calls.
const work = "work"

// helperLoop has the kernel call a function (bpf_loop, Linux 5.17).
type helperLoop struct{}

func (helperLoop) most() int64 { return MaxHeavy }

func (helperLoop) rounds() asm.Instructions {
	call := func(skip string) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.R7),
			asm.JLE.Imm(asm.R1, maxLoop, skip),
			asm.Mov.Imm(asm.R1, maxLoop),
			asm.Sub.Reg(asm.R7, asm.R1).WithSymbol(skip),
			asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R2, Src: asm.PseudoFunc, Constant: -1}.WithReference(work),
			asm.Mov.Reg(asm.R3, asm.RFP),
			asm.Add.Imm(asm.R3, onState),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnLoop.Call(),
		}
	}
	ins := call("first")
	ins = append(ins, asm.JEq.Imm(asm.R7, 0, "light"))
	return append(ins, call("second")...)
}

func (helperLoop) functions() asm.Instructions {
	ins := asm.Instructions{
		function(work, btf.StaticFunc, asm.LoadMem(asm.R3, asm.R2, 0, asm.DWord), "index", "state"),
	}
	ins = append(ins, xorshift()...)
	return append(ins,
		asm.StoreMem(asm.R2, 0, asm.R3, asm.DWord),
		asm.Mov.Imm(asm.R0, 0), // go on
		asm.Return(),
	)
}

// walkedLoop is a loop within the program (Linux 5.3). It does whole blocks.
type walkedLoop struct{}

func (walkedLoop) most() int64 { return maxWalked }

func (walkedLoop) rounds() asm.Instructions {
	ins := asm.Instructions{
		asm.Mov.Imm(asm.R8, 0),
		asm.JGE.Reg(asm.R8, asm.R7, "light").WithSymbol("again"),
		asm.JGE.Imm(asm.R8, maxWalked, "light"),
		asm.LoadMem(asm.R3, asm.RFP, onState, asm.DWord),
	}
	for range walkedBlock {
		ins = append(ins, xorshift()...)
	}
	return append(ins,
		asm.StoreMem(asm.RFP, onState, asm.R3, asm.DWord),
		asm.Add.Imm(asm.R8, walkedBlock),
		asm.Ja.Label("again"),
	)
}

func (walkedLoop) functions() asm.Instructions { return nil }

// xorshift is one round on R3: Marsaglia, Xorshift RNGs (2003), the triple 13, 7,
// 17. Every round needs the one before, so nothing can be left out or done at once.
func xorshift() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R4, asm.R3),
		asm.LSh.Imm(asm.R4, 13),
		asm.Xor.Reg(asm.R3, asm.R4),
		asm.Mov.Reg(asm.R4, asm.R3),
		asm.RSh.Imm(asm.R4, 7),
		asm.Xor.Reg(asm.R3, asm.R4),
		asm.Mov.Reg(asm.R4, asm.R3),
		asm.LSh.Imm(asm.R4, 17),
		asm.Xor.Reg(asm.R3, asm.R4),
	}
}

// SetHeavy changes the rounds of the loop, for every run that begins from now on.
// The programs stay attached and the same.
func (d *Datapath) SetHeavy(rounds int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed
	}
	if err := d.setHeavy(rounds); err != nil {
		return fmt.Errorf("reference datapath: %w", err)
	}
	return nil
}

func (d *Datapath) setHeavy(rounds int64) error {
	if rounds < 0 || rounds > MaxHeavy {
		return fmt.Errorf("%d rounds of the loop: 0 to %d are possible", rounds, int64(MaxHeavy))
	}
	if most := d.loop.most(); rounds > most {
		return fmt.Errorf("%d rounds of the loop: %w: without bpf_loop (Linux 5.17) up to %d are possible", rounds, ErrUnsupported, most)
	}
	if err := d.rounds.Update(uint32(0), uint64(rounds), ebpf.UpdateAny); err != nil {
		return fmt.Errorf("set the rounds of the loop to %d: %w", rounds, err)
	}
	return nil
}

// frame is what a program is given in a test run: the kernel wants an Ethernet
// header at least.
var frame [64]byte

// TestRun has the kernel run the loop, as heavy as it is now, so many times and
// time it (BPF_PROG_TEST_RUN): ns for one run, in whole ns.
//
// The kernel can test-run neither of the programs' kinds. So it is a twin that
// runs: the same instructions up to the end of the loop, in a socket filter, with
// the same map of rounds. It is loaded for this call and attached nowhere.
func (d *Datapath) TestRun(repeat int) (nsPerRun float64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, errClosed
	}
	if repeat < 1 {
		return 0, fmt.Errorf("reference datapath: test-run the loop %d times: once at least", repeat)
	}
	_, each, err := d.runTwin(repeat)
	if err != nil {
		return 0, fmt.Errorf("reference datapath: %w", err)
	}
	return float64(each.Nanoseconds()), nil
}

// runTwin returns the lower half of what the loop's last run has worked out.
func (d *Datapath) runTwin(repeat int) (result uint32, each time.Duration, err error) {
	p, err := d.loadTwin()
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = p.Close() }()
	result, each, err = p.Benchmark(frame[:], repeat, nil)
	if err != nil {
		return 0, 0, explained("test-run the loop", err)
	}
	return result, each, nil
}

func (d *Datapath) loadTwin() (*ebpf.Program, error) {
	return load(d.name+suffixTwin, ebpf.SocketFilter, ebpf.AttachNone, d.twin())
}

func (d *Datapath) twin() asm.Instructions {
	ins := asm.Instructions{
		entry(d.name+suffixTwin, asm.Mov.Reg(asm.R6, asm.R1)),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, onState, asm.R1, asm.DWord),
	}
	ins = append(ins, d.heavy()...)
	ins = append(ins, asm.LoadMem(asm.R0, asm.RFP, onState, asm.DWord), asm.Return())
	return append(ins, d.loop.functions()...)
}
