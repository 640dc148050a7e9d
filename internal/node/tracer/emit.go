package tracer

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// What the programs keep on their stack, as offsets from its end.
const (
	onKey      = -8   // u32: a CPU or a pid, to look up
	onWord     = -16  // u64: what was read last
	onCPU      = -24  // the place of this CPU
	onSum      = -32  // u64
	onRecord   = -104 // what is handed over
	onFile     = -112 // *char
	onArgStart = -120
	onArgEnd   = -128
	onEnvStart = -136
	onEnvEnd   = -144
)

// A record as the programs hand it over, in the machine's order of bytes. What
// an exec adds follows: file, arguments and environment, of the lengths that
// stand there.
const (
	atKind   = 0  // u32
	atPid    = 4  // u32
	atParent = 8  // u32
	atStatus = 12 // u32, as wait(2) has it
	atTime   = 16 // u64
	atCPU    = 24 // u64
	atBusy   = 32 // u64
	atStart  = 40 // u64: when the process was born; tells it from a later one with its pid
	atComm   = 48 // 16 bytes
	atFile   = 64 // u16
	atArgs   = 66 // u16
	atEnv    = 68 // u16
	atFlags  = 70 // u16
	header   = 72
)

// What is read of a program's name, arguments and environment at most.
const (
	maxFile = 512
	maxArgs = 4096
	maxEnv  = 4096
	scratch = header + maxFile + maxArgs + maxEnv
)

// Bits of a record's flags.
const (
	flagArgsCut  = 1 << iota // there are more arguments
	flagArgsGone             // they could not be read
	flagEnvCut               // the environment is the end of a longer one
)

// The place of one CPU in the map of CPUs. Only that CPU writes it.
const (
	// A u64, so that others read it in one piece: its lowest bit says that a
	// tracked process runs now. Above it is the CPU time that tracked processes
	// have used here (ns); while one runs, minus the time at which it began.
	slotBusy   = 0
	slotOffset = 8  // CLOCK_MONOTONIC minus the clock of the scheduler, at the last switch
	slotSpent  = 16 // ns in our programs
	slotLost   = 24 // events that did not fit
	slotSize   = 64 // a cache line
)

// maxThreads is how many threads of a process are added up at most when it ends:
// those that are ending at the same time, and the first, which stays until then.
// Of more the CPU time is not known. Who executes a program is alone.
const maxThreads = 512

// program is the instructions of one program while they are written. R6 is the
// task, R7 the time (ns, CLOCK_MONOTONIC); R8 and R9 are free.
type program struct {
	*kernel
	*maps
	ins    asm.Instructions
	labels int
	next   string // the label of the next instruction
}

type maps struct {
	cpus    *ebpf.Map // CPU → its place
	tracked *ebpf.Map // pid → 1
	events  *ebpf.Map // ring buffer
	scratch *ebpf.Map // per CPU, one: where the record of an exec is put together
	n       int       // CPUs that are possible
	tick    int64     // ns between two updates of the scheduler's sums
}

func (p *program) add(ins ...asm.Instruction) {
	for _, i := range ins {
		if p.next != "" {
			i, p.next = i.WithSymbol(p.next), ""
		}
		p.ins = append(p.ins, i)
	}
}

// label makes a name; place puts it before the next instruction.
func (p *program) label() string { p.labels++; return fmt.Sprintf("l%d", p.labels) }

func (p *program) place(label string) {
	if p.next != "" {
		p.add(asm.Mov.Reg(asm.R0, asm.R0))
	}
	p.next = label
}

// read reads kernel memory at a register plus an offset onto the stack. What
// cannot be read becomes 0.
func (p *program) read(to int32, size int32, from asm.Register, off int32) {
	p.add(
		asm.Mov.Reg(asm.R3, from),
		asm.Add.Imm(asm.R3, off),
		asm.Mov.Imm(asm.R2, size),
		asm.Mov.Reg(asm.R1, asm.RFP),
		asm.Add.Imm(asm.R1, to),
		asm.FnProbeReadKernel.Call(),
	)
}

// word reads 8 bytes of kernel memory into a register.
func (p *program) word(to, from asm.Register, off int32) {
	p.read(onWord, 8, from, off)
	p.add(asm.LoadMem(to, asm.RFP, onWord, asm.DWord))
}

// half reads 4.
func (p *program) half(to, from asm.Register, off int32) {
	p.read(onWord, 4, from, off)
	p.add(asm.LoadMem(to, asm.RFP, onWord, asm.Word))
}

// lookup looks up the u32 at onKey: R0 is where the value is, or 0.
func (p *program) lookup(m *ebpf.Map) {
	p.add(
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, onKey),
		asm.FnMapLookupElem.Call(),
	)
}

func (p *program) key(from asm.Register) {
	p.add(asm.StoreMem(asm.RFP, onKey, from, asm.Word))
}

// begin takes the time and finds this CPU's place.
func (p *program) begin() {
	p.add(
		asm.FnKtimeGetNs.Call(),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.StoreMem(asm.RFP, onRecord+atTime, asm.R7, asm.DWord),
		asm.FnGetSmpProcessorId.Call(),
	)
	p.key(asm.R0)
	p.lookup(p.cpus)
	p.add(
		asm.JEq.Imm(asm.R0, 0, "exit"),
		asm.StoreMem(asm.RFP, onCPU, asm.R0, asm.DWord),
	)
}

// end adds up what the program took, and ends it. "end" and "exit" are where
// others jump to.
func (p *program) end() {
	p.place("end")
	p.add(
		asm.FnKtimeGetNs.Call(),
		asm.LoadMem(asm.R1, asm.RFP, onRecord+atTime, asm.DWord),
		asm.Sub.Reg(asm.R0, asm.R1),
		asm.LoadMem(asm.R1, asm.RFP, onCPU, asm.DWord),
		asm.AddAtomic.Mem(asm.R1, asm.R0, asm.DWord, slotSpent),
	)
	p.place("exit")
	p.add(asm.Mov.Imm(asm.R0, 0), asm.Return())
}

func (p *program) put(at int16, size asm.Size, from asm.Register) {
	p.add(asm.StoreMem(asm.RFP, onRecord+at, from, size))
}

func (p *program) putImm(at int16, size asm.Size, value int32) {
	p.add(asm.Mov.Imm(asm.R1, value))
	p.put(at, size, asm.R1)
}

// loop calls body at most n times, with R as the counter, until it jumps to the
// label that it is given. Bounded loops: Linux 5.3.
func (p *program) loop(counter asm.Register, n int, body func(done string)) {
	again, done := p.label(), p.label()
	p.add(asm.Mov.Imm(counter, 0))
	p.place(again)
	p.add(asm.JGE.Imm(counter, int32(n), done))
	body(done)
	p.add(asm.Add.Imm(counter, 1), asm.Ja.Label(again))
	p.place(done)
}

// busy adds up what tracked processes have used, also what they use this very
// moment on all CPUs. It uses R8.
func (p *program) busy() {
	p.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, onSum, asm.R1, asm.DWord))
	p.loop(asm.R8, p.n, func(string) {
		p.key(asm.R8)
		p.lookup(p.cpus)
		none, idle := p.label(), p.label()
		p.add(
			asm.JEq.Imm(asm.R0, 0, none),
			asm.LoadMem(asm.R1, asm.R0, slotBusy, asm.DWord),
			asm.Mov.Reg(asm.R2, asm.R1),
			asm.ArSh.Imm(asm.R1, 1),
			asm.And.Imm(asm.R2, 1),
			asm.JEq.Imm(asm.R2, 0, idle),
			asm.Add.Reg(asm.R1, asm.R7),
		)
		p.place(idle)
		p.add(
			asm.LoadMem(asm.R2, asm.RFP, onSum, asm.DWord),
			asm.Add.Reg(asm.R2, asm.R1),
			asm.StoreMem(asm.RFP, onSum, asm.R2, asm.DWord),
		)
		p.place(none)
	})
	p.add(asm.LoadMem(asm.R1, asm.RFP, onSum, asm.DWord))
	p.put(atBusy, asm.DWord, asm.R1)
}

// used adds up the CPU time of the process whose signal_struct is R8: that of
// threads that are gone, and that of each that is there. The scheduler brings a
// running thread's sum up to date at every tick; what it has used since is told
// from the scheduler's clock. It uses R6 and R9.
func (p *program) used(threads int) {
	p.word(asm.R1, asm.R8, p.signal.sumRuntime)
	p.add(asm.StoreMem(asm.RFP, onSum, asm.R1, asm.DWord))
	p.word(asm.R9, asm.R8, p.signal.threadHead)
	whole := p.label()
	p.loop(asm.R6, threads+1, func(string) {
		p.add(
			asm.Mov.Reg(asm.R1, asm.R8),
			asm.Add.Imm(asm.R1, p.signal.threadHead),
			asm.JEq.Reg(asm.R9, asm.R1, whole),
			asm.JEq.Imm(asm.R9, 0, whole),
		)
		p.word(asm.R1, asm.R9, p.task.sumExec-p.task.threadNode)
		p.sum(asm.R1)
		p.running()
		p.word(asm.R9, asm.R9, 0)
	})
	p.add(asm.Mov.Imm(asm.R1, -1), asm.StoreMem(asm.RFP, onSum, asm.R1, asm.DWord))
	p.place(whole)
	p.add(asm.LoadMem(asm.R1, asm.RFP, onSum, asm.DWord))
	p.put(atCPU, asm.DWord, asm.R1)
}

// running adds what a thread, if it runs, has used since its sum was brought up
// to date.
func (p *program) running() {
	if p.task.onCPU == absent || p.task.cpu == absent {
		return
	}
	not, some := p.label(), p.label()
	p.half(asm.R1, asm.R9, p.task.onCPU-p.task.threadNode)
	p.add(asm.JEq.Imm(asm.R1, 0, not))
	p.half(asm.R1, asm.R9, p.task.cpu-p.task.threadNode)
	p.key(asm.R1)
	p.word(asm.R1, asm.R9, p.task.execStart-p.task.threadNode)
	p.lookup(p.cpus)
	p.add(
		asm.JEq.Imm(asm.R0, 0, not),
		asm.LoadMem(asm.R2, asm.R0, slotOffset, asm.DWord),
		asm.JEq.Imm(asm.R2, 0, not),
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.Sub.Reg(asm.R1, asm.R2),
		asm.LoadMem(asm.R2, asm.RFP, onWord, asm.DWord),
		asm.Sub.Reg(asm.R1, asm.R2),
		asm.JSLE.Imm(asm.R1, 0, not),
		asm.JSLE.Imm(asm.R1, int32(p.tick), some),
		asm.Mov.Imm(asm.R1, int32(p.tick)),
	)
	p.place(some)
	p.sum(asm.R1)
	p.place(not)
}

func (p *program) sum(r asm.Register) {
	p.add(
		asm.LoadMem(asm.R2, asm.RFP, onSum, asm.DWord),
		asm.Add.Reg(asm.R2, r),
		asm.StoreMem(asm.RFP, onSum, asm.R2, asm.DWord),
	)
}

// Flags of the ring buffer, linux/bpf.h.
const (
	ringNoWakeup    = 1
	ringForceWakeup = 2
	ringAvailable   = 0 // bpf_ringbuf_query: bytes that were not read yet
)

// output hands over the record whose place is a register and whose size is R6.
// Nobody is woken up for it before a quarter of the buffer is full: whoever
// wants it asks.
func (p *program) output(record asm.Register, off int32) {
	quiet, fits := p.label(), p.label()
	p.add(
		asm.LoadMapPtr(asm.R1, p.events.FD()),
		asm.Mov.Imm(asm.R2, ringAvailable),
		asm.FnRingbufQuery.Call(),
		asm.Mov.Imm(asm.R4, ringNoWakeup),
		asm.JLT.Imm(asm.R0, ringSize/4, quiet),
		asm.Mov.Imm(asm.R4, ringForceWakeup),
	)
	p.place(quiet)
	p.add(
		asm.LoadMapPtr(asm.R1, p.events.FD()),
		asm.Mov.Reg(asm.R2, record),
		asm.Add.Imm(asm.R2, off),
		asm.Mov.Reg(asm.R3, asm.R6),
		asm.FnRingbufOutput.Call(),
		asm.JEq.Imm(asm.R0, 0, fits),
		asm.LoadMem(asm.R1, asm.RFP, onCPU, asm.DWord),
		asm.Mov.Imm(asm.R2, 1),
		asm.AddAtomic.Mem(asm.R1, asm.R2, asm.DWord, slotLost),
	)
	p.place(fits)
}
