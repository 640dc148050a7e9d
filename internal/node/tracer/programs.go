package tracer

import "github.com/cilium/ebpf/asm"

// The arguments of the tracepoints, see include/trace/events/sched.h.
const (
	argument1 = 0
	argument2 = 8
	argument3 = 16
)

// Constants of linux/sched/signal.h and linux/sched.h.
const (
	signalGroupExit = 4
	taskDead        = 0x80
)

// onSwitch keeps this CPU's place: whether a tracked process runs now, and the
// scheduler's clock. Arguments: preempt, from, to.
func onSwitch(k *kernel, m *maps) asm.Instructions {
	p := &program{kernel: k, maps: m}
	p.add(
		asm.LoadMem(asm.R9, asm.R1, argument2, asm.DWord),
		asm.LoadMem(asm.R8, asm.R1, argument3, asm.DWord),
	)
	p.begin()
	stale, untracked, store, lives := p.label(), p.label(), p.label(), p.label()
	p.add(
		// The scheduler has just set the clock of who comes. Idle has none.
		asm.LoadMem(asm.R1, asm.R8, int16(k.task.tgid), asm.Word),
		asm.JEq.Imm(asm.R1, 0, stale),
		asm.LoadMem(asm.R2, asm.R8, int16(k.task.execStart), asm.DWord),
		asm.Mov.Reg(asm.R3, asm.R7),
		asm.Sub.Reg(asm.R3, asm.R2),
		asm.StoreMem(asm.R0, slotOffset, asm.R3, asm.DWord),
	)
	p.place(stale)
	p.key(asm.R1)
	p.account(untracked, store)
	// Who leaves for good is not tracked any more, once all its threads have.
	size := asm.Word
	if k.stateSize == 8 {
		size = asm.DWord
	}
	p.add(
		asm.LoadMem(asm.R1, asm.R9, int16(k.task.state), size),
		asm.And.Imm(asm.R1, taskDead),
		asm.JEq.Imm(asm.R1, 0, "end"),
	)
	p.word(asm.R8, asm.R9, k.task.signal)
	p.half(asm.R1, asm.R8, k.signal.live)
	p.add(asm.JEq.Imm(asm.R1, 0, lives), asm.Ja.Label("end"))
	p.place(lives)
	p.half(asm.R1, asm.R9, k.task.tgid)
	p.key(asm.R1)
	p.add(
		asm.LoadMapPtr(asm.R1, m.tracked.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, onKey),
		asm.FnMapDeleteElem.Call(),
	)
	p.end()
	return p.ins
}

// account closes what ran on this CPU and opens what runs now, whose pid is at
// onKey. R8 is used.
func (p *program) account(untracked, store string) {
	closed := p.label()
	p.add(
		asm.LoadMem(asm.R1, asm.RFP, onCPU, asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, slotBusy, asm.DWord),
		asm.Mov.Reg(asm.R8, asm.R1),
		asm.ArSh.Imm(asm.R8, 1),
		asm.And.Imm(asm.R1, 1),
		asm.JEq.Imm(asm.R1, 0, closed),
		asm.Add.Reg(asm.R8, asm.R7),
	)
	p.place(closed)
	p.lookup(p.tracked)
	p.add(
		asm.JEq.Imm(asm.R0, 0, untracked),
		asm.Sub.Reg(asm.R8, asm.R7),
		asm.LSh.Imm(asm.R8, 1),
		asm.Or.Imm(asm.R8, 1),
		asm.Ja.Label(store),
	)
	p.place(untracked)
	p.add(asm.LSh.Imm(asm.R8, 1))
	p.place(store)
	p.add(
		asm.LoadMem(asm.R1, asm.RFP, onCPU, asm.DWord),
		asm.StoreMem(asm.R1, slotBusy, asm.R8, asm.DWord),
	)
}

// onMark does what a switch does for whoever runs now. It is run on every CPU
// when what is tracked has changed.
func onMark(k *kernel, m *maps) asm.Instructions {
	p := &program{kernel: k, maps: m}
	p.begin()
	p.add(asm.FnGetCurrentPidTgid.Call(), asm.RSh.Imm(asm.R0, 32))
	p.key(asm.R0)
	p.account(p.label(), p.label())
	p.end()
	return p.ins
}

// onFork hands over the birth of a process. Arguments: parent, child.
func onFork(k *kernel, m *maps) asm.Instructions {
	p := &program{kernel: k, maps: m}
	p.add(
		asm.LoadMem(asm.R8, asm.R1, argument1, asm.DWord),
		asm.LoadMem(asm.R6, asm.R1, argument2, asm.DWord),
	)
	p.begin()
	p.half(asm.R9, asm.R6, k.task.pid)
	p.half(asm.R1, asm.R6, k.task.tgid)
	p.add(asm.JNE.Reg(asm.R9, asm.R1, "end")) // a thread
	p.put(atPid, asm.Word, asm.R9)
	p.half(asm.R1, asm.R8, k.task.tgid)
	p.put(atParent, asm.Word, asm.R1)
	p.key(asm.R1)
	p.lookup(m.tracked)
	untracked := p.label()
	p.add(asm.JEq.Imm(asm.R0, 0, untracked))
	p.key(asm.R9)
	p.add(
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreMem(asm.RFP, onWord, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, m.tracked.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, onKey),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, onWord),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call(),
	)
	p.place(untracked)
	p.word(asm.R1, asm.R6, k.task.startTime)
	p.put(atStart, asm.DWord, asm.R1)
	p.comm()
	p.putImm(atStatus, asm.Word, 0)
	p.putImm(atCPU, asm.DWord, 0)
	p.finish(Fork)
	return p.ins
}

// comm is that of the running thread; a child has its parent's.
func (p *program) comm() {
	p.add(
		asm.Mov.Reg(asm.R1, asm.RFP),
		asm.Add.Imm(asm.R1, onRecord+atComm),
		asm.Mov.Imm(asm.R2, 16),
		asm.FnGetCurrentComm.Call(),
	)
}

// of puts who R6 is, and its parent. R8 becomes its signal_struct.
func (p *program) of() {
	p.half(asm.R1, asm.R6, p.task.tgid)
	p.put(atPid, asm.Word, asm.R1)
	p.word(asm.R8, asm.R6, p.task.realParent)
	p.half(asm.R1, asm.R8, p.task.tgid)
	p.put(atParent, asm.Word, asm.R1)
	p.word(asm.R8, asm.R6, p.task.leader)
	p.word(asm.R1, asm.R8, p.task.startTime)
	p.put(atStart, asm.DWord, asm.R1)
	p.comm()
	p.word(asm.R8, asm.R6, p.task.signal)
}

// finish hands over a record that nothing is added to.
func (p *program) finish(kind Kind) {
	p.putImm(atKind, asm.Word, int32(kind))
	p.putImm(atFile, asm.DWord, 0) // and the lengths after it
	p.busy()
	p.add(asm.Mov.Imm(asm.R6, header))
	p.output(asm.RFP, onRecord)
	p.end()
}

// onExit hands over the end of a process, when its last thread ends. Arguments:
// the thread, and since Linux 6.15 whether it is the last.
//
// Before, whether threads are left is asked of the process; of two that end at
// once both may find none, and the reader knows the second by atStart.
func onExit(k *kernel, m *maps) asm.Instructions {
	p := &program{kernel: k, maps: m}
	p.add(asm.LoadMem(asm.R6, asm.R1, argument1, asm.DWord))
	if k.groupDead {
		p.add(asm.LoadMem(asm.R9, asm.R1, argument2, asm.DWord))
	}
	p.begin()
	if k.groupDead {
		p.add(asm.And.Imm(asm.R9, 0xff), asm.JEq.Imm(asm.R9, 0, "end"))
	} else {
		p.word(asm.R8, asm.R6, k.task.signal)
		p.half(asm.R1, asm.R8, k.signal.live)
		p.add(asm.JNE.Imm(asm.R1, 0, "end"))
	}
	p.of()
	// As wait(2) has it: of all where all were ended together, else the leader's.
	alone, known := p.label(), p.label()
	p.half(asm.R1, asm.R8, k.signal.flags)
	p.add(
		asm.And.Imm(asm.R1, signalGroupExit),
		asm.JEq.Imm(asm.R1, 0, alone),
	)
	p.half(asm.R1, asm.R8, k.signal.groupExitCode)
	p.add(asm.Ja.Label(known))
	p.place(alone)
	p.word(asm.R9, asm.R6, k.task.leader)
	p.half(asm.R1, asm.R9, k.task.exitCode)
	p.place(known)
	p.put(atStatus, asm.Word, asm.R1)
	p.used(maxThreads)
	p.finish(Exit)
	return p.ins
}

// onExec hands over a program that was executed, with its arguments and the end
// of its environment, both just written by the kernel. Arguments: the thread,
// its former pid, struct linux_binprm.
func onExec(k *kernel, m *maps) asm.Instructions {
	p := &program{kernel: k, maps: m}
	p.add(
		asm.LoadMem(asm.R6, asm.R1, argument1, asm.DWord),
		asm.LoadMem(asm.R9, asm.R1, argument3, asm.DWord),
	)
	p.begin()
	p.read(onFile, 8, asm.R9, k.binprm.filename)
	p.word(asm.R9, asm.R6, k.task.mm)
	p.read(onArgStart, 8, asm.R9, k.mm.argStart)
	p.read(onArgEnd, 8, asm.R9, k.mm.argEnd)
	p.read(onEnvStart, 8, asm.R9, k.mm.envStart)
	p.read(onEnvEnd, 8, asm.R9, k.mm.envEnd)
	p.of()
	p.used(1)
	p.busy()
	p.putImm(atKind, asm.Word, int32(Exec))
	p.putImm(atStatus, asm.Word, 0)
	p.putImm(atFile, asm.DWord, 0)
	p.compose()
	p.output(asm.R9, 0)
	p.end()
	return p.ins
}

// compose copies the record to the scratch place, R9, and puts file, arguments
// and environment behind it. R6 becomes its size.
func (p *program) compose() {
	p.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, onKey, asm.R1, asm.Word))
	p.lookup(p.scratch)
	p.add(asm.JEq.Imm(asm.R0, 0, "end"), asm.Mov.Reg(asm.R9, asm.R0))
	for at := int16(0); at < header; at += 8 {
		p.add(
			asm.LoadMem(asm.R1, asm.RFP, onRecord+at, asm.DWord),
			asm.StoreMem(asm.R9, at, asm.R1, asm.DWord),
		)
	}
	noFile, file := p.label(), p.label()
	p.add(
		asm.Mov.Reg(asm.R1, asm.R9),
		asm.Add.Imm(asm.R1, header),
		asm.Mov.Imm(asm.R2, maxFile),
		asm.LoadMem(asm.R3, asm.RFP, onFile, asm.DWord),
		asm.FnProbeReadKernelStr.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.JSLT.Imm(asm.R8, 0, noFile),
		asm.JSLE.Imm(asm.R8, maxFile, file),
	)
	p.place(noFile)
	p.add(asm.Mov.Imm(asm.R8, 0))
	p.place(file)
	p.add(asm.StoreMem(asm.R9, atFile, asm.R8, asm.Half))

	p.stretch(asm.R6, onArgStart, onArgEnd, maxArgs, flagArgsCut)
	p.add(asm.StoreMem(asm.R9, atArgs, asm.R6, asm.Half))
	p.add(asm.LoadMem(asm.R3, asm.RFP, onArgStart, asm.DWord))
	p.user(asm.R6, flagArgsGone, asm.R8)

	p.stretch(asm.R7, onEnvStart, onEnvEnd, maxEnv, flagEnvCut)
	p.add(asm.StoreMem(asm.R9, atEnv, asm.R7, asm.Half))
	p.add(asm.LoadMem(asm.R3, asm.RFP, onEnvEnd, asm.DWord), asm.Sub.Reg(asm.R3, asm.R7))
	p.user(asm.R7, flagEnvCut, asm.R8, asm.R6)

	p.add(
		asm.Add.Reg(asm.R6, asm.R8),
		asm.Add.Reg(asm.R6, asm.R7),
		asm.Add.Imm(asm.R6, header),
	)
}

// stretch is how long the memory between two addresses is, no more than most;
// where it is longer the flag is set.
func (p *program) stretch(r asm.Register, start, end int16, most int32, flag int32) {
	wrong, good := p.label(), p.label()
	p.add(
		asm.LoadMem(r, asm.RFP, end, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, start, asm.DWord),
		asm.JGT.Reg(asm.R1, r, wrong),
		asm.Sub.Reg(r, asm.R1),
		asm.JLE.Imm(r, most, good),
	)
	p.flag(flag)
	p.add(asm.Mov.Imm(r, most), asm.Ja.Label(good))
	p.place(wrong)
	p.add(asm.Mov.Imm(r, 0))
	p.place(good)
}

func (p *program) flag(flag int32) {
	p.add(
		asm.LoadMem(asm.R1, asm.R9, atFlags, asm.Half),
		asm.Or.Imm(asm.R1, flag),
		asm.StoreMem(asm.R9, atFlags, asm.R1, asm.Half),
	)
}

// user reads size bytes of the process's memory at R3 to behind what is there.
func (p *program) user(size asm.Register, flag int32, after ...asm.Register) {
	good := p.label()
	p.add(asm.Mov.Reg(asm.R1, asm.R9), asm.Add.Imm(asm.R1, header))
	for _, r := range after {
		p.add(asm.Add.Reg(asm.R1, r))
	}
	p.add(
		asm.Mov.Reg(asm.R2, size),
		asm.FnProbeReadUser.Call(),
		asm.JEq.Imm(asm.R0, 0, good),
	)
	p.flag(flag)
	p.place(good)
}
