package datapath

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// license: the programs are instructions of this package's own, and call nothing
// that the kernel lends to programs under the GPL only.
const license = "Dual MIT/GPL"

// What the programs keep on their stack, as offsets from its end.
const (
	onState = -8  // u64: what the loop works on
	onKey   = -16 // an address, serviceSize bytes
	onIndex = -20 // u32: a place in an array
)

// Offsets in struct bpf_sock_addr and struct bpf_sock_ops of linux/bpf.h.
const (
	addrIP4  = 4  // u32, network's order
	addrPort = 24 // u32 that holds a u16 of the network's order
	opsOp    = 0  // u32
)

// Operations of a sock_ops, enum in linux/bpf.h.
const (
	opActive   = 4  // BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB: a connect has succeeded
	opPassive  = 5  // BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB: a listener has a connection
	operations = 32 // that are counted; Linux 6.18 has less
)

// What the programs are called, behind Options.Name.
const (
	suffixConnect4 = "_connect4"
	suffixSockops  = "_sockops"
	suffixTwin     = "_twin"
)

// verdict is what a program of a cgroup returns to let things go on.
const verdict = 1

// connect4 puts the backend in the place of a service's address. What is no
// service's is left as it is. R6 is the struct bpf_sock_addr.
func (d *Datapath) connect4() asm.Instructions {
	ins := asm.Instructions{
		entry(d.name+suffixConnect4, asm.Mov.Reg(asm.R6, asm.R1)),
	}
	ins = append(ins, d.heavy()...)
	ins = append(ins,
		asm.LoadMem(asm.R1, asm.R6, addrIP4, asm.Word),
		asm.StoreMem(asm.RFP, onKey, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R6, addrPort, asm.Word),
		asm.StoreMem(asm.RFP, onKey+4, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, d.services.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, onKey),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "end"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
		asm.StoreMem(asm.R6, addrIP4, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R0, 4, asm.Word),
		asm.StoreMem(asm.R6, addrPort, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R0, verdict).WithSymbol("end"),
		asm.Return(),
	)
	return append(ins, d.loop.functions()...)
}

// sockops counts what it is called for. Additions are atomic: a connection's
// event may interrupt another one's on the same CPU. R6 is the struct
// bpf_sock_ops.
func (d *Datapath) sockops() asm.Instructions {
	ins := asm.Instructions{
		entry(d.name+suffixSockops, asm.Mov.Reg(asm.R6, asm.R1)),
	}
	ins = append(ins, d.heavy()...)
	ins = append(ins,
		asm.LoadMem(asm.R1, asm.R6, opsOp, asm.Word),
		asm.StoreMem(asm.RFP, onIndex, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, d.events.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, onIndex),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "end"),
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0),
		asm.Mov.Imm(asm.R0, verdict).WithSymbol("end"),
		asm.Return(),
	)
	return append(ins, d.loop.functions()...)
}

// heavy does the rounds of the loop that the map asks for now. R6 stays.
func (d *Datapath) heavy() asm.Instructions {
	ins := asm.Instructions{
		asm.StoreImm(asm.RFP, onIndex, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, d.rounds.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, onIndex),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "light"),
		asm.LoadMem(asm.R7, asm.R0, 0, asm.DWord),
		asm.JEq.Imm(asm.R7, 0, "light"),
		// Not 0, of which the work would be 0 again; and not a constant, so that
		// the verifier cannot work it out.
		asm.StoreMem(asm.RFP, onState, asm.R7, asm.DWord),
	}
	ins = append(ins, d.loop.rounds()...)
	return append(ins, asm.Mov.Imm(asm.R0, 0).WithSymbol("light"))
}

// entry marks the first instruction of a program. Its name is the program's own:
// tools show what BTF says in the place of a name of 15 bytes, which may be cut.
func entry(name string, first asm.Instruction) asm.Instruction {
	return function(name, btf.GlobalFunc, first, "ctx")
}

// function marks the first instruction of a function for BTF, without which the
// kernel lets nobody take a function's address.
func function(name string, linkage btf.FuncLinkage, first asm.Instruction, parameters ...string) asm.Instruction {
	long := &btf.Int{Name: "long", Size: 8, Encoding: btf.Signed}
	proto := &btf.FuncProto{Return: long}
	for _, p := range parameters {
		proto.Params = append(proto.Params, btf.FuncParam{Name: p, Type: long})
	}
	return btf.WithFuncMetadata(first, &btf.Func{Name: name, Type: proto, Linkage: linkage}).WithSymbol(name)
}

// Connections are how many connects of sockets in the cgroup have succeeded, and
// how many connections its listeners have got. Both ends of one count where both
// are in it.
func (d *Datapath) Connections() (active, passive int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, 0, errClosed
	}
	if d.events == nil {
		return 0, 0, errors.New("reference datapath: it was attached without a look at connections' events")
	}
	sums, err := d.sums()
	if err != nil {
		return 0, 0, fmt.Errorf("reference datapath: read the counts of events: %w", err)
	}
	return sums[opActive], sums[opPassive], nil
}

// sums adds up the CPUs' counts of each operation.
func (d *Datapath) sums() (out [operations]int64, err error) {
	for op := range uint32(operations) {
		var each []uint64
		if err := d.events.Lookup(op, &each); err != nil {
			return out, err
		}
		for _, n := range each {
			out[op] += int64(n)
		}
	}
	return out, nil
}
