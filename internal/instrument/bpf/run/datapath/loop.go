package datapath

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
)

// maxHeavy is how many rounds one run of a program can do, where the kernel has
// bpf_loop: two calls of it. One round takes from 1.5 to 10 ns, by the processor and
// by how the kernel calls back; TestRun says it.
const maxHeavy = 2 << 23

// loop is a way to do work for a given number of rounds. There are programs for each.
type loop struct {
	suffix string // of their names in src/datapath.c
	most   int64
}

var (
	looped = loop{"", maxHeavy}         // by bpf_loop, Linux 5.17
	walked = loop{"_walked", 4096 * 16} // within the program: MAX_WALKED
)

// theLoop is the loop that the kernel can do.
func theLoop() (loop, error) {
	err := features.HaveProgramHelper(ebpf.SocketFilter, asm.FnLoop)
	switch {
	case err == nil:
		return looped, nil
	case errors.Is(err, ebpf.ErrNotSupported):
		return walked, nil
	}
	return loop{}, explained("ask the kernel for bpf_loop", err)
}

// spec is of these programs, with this loop, and all maps.
func (l loop) spec(names ...string) (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("read the embedded programs: %w", err)
	}
	programs := make(map[string]*ebpf.ProgramSpec)
	for _, name := range names {
		p := spec.Programs[name+l.suffix]
		p.Name = name
		// Tools show what BTF says in the place of a name of 15 bytes, which may be cut.
		btf.FuncMetadata(&p.Instructions[0]).Name = name
		programs[name] = p
	}
	spec.Programs = programs
	return spec, nil
}

// SetHeavy changes the rounds of the loop, for every run that begins from now on.
// The programs stay attached and the same.
func (d *Datapath) SetHeavy(rounds int64) error {
	if rounds < 0 || rounds > maxHeavy {
		return fmt.Errorf("reference datapath: %d rounds of the loop: 0 to %d are possible", rounds, int64(maxHeavy))
	}
	if rounds > d.loop.most {
		return fmt.Errorf("reference datapath: %d rounds of the loop: %w: without bpf_loop (Linux 5.17) up to %d are possible", rounds, errUnsupported, d.loop.most)
	}
	if err := d.rounds.Update(uint32(0), uint64(rounds), ebpf.UpdateAny); err != nil {
		return fmt.Errorf("reference datapath: set the rounds of the loop to %d: %w", rounds, err)
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
// runs: the same up to the end of the loop, in a socket filter, with the same map of
// rounds. It is loaded for this call and attached nowhere.
func (d *Datapath) TestRun(repeat int) (nsPerRun float64, err error) {
	twin, err := d.loadTwin()
	if err != nil {
		return 0, err
	}
	defer twin.Close()
	_, each, err := twin.Benchmark(frame[:], repeat, nil)
	if err != nil {
		return 0, explained("test-run the loop", err)
	}
	return float64(each.Nanoseconds()), nil
}

func (d *Datapath) loadTwin() (*ebpf.Program, error) {
	spec, err := d.loop.spec(progTwin)
	if err != nil {
		return nil, err
	}
	var only struct {
		Twin *ebpf.Program `ebpf:"tare_twin"`
	}
	rounds := map[string]*ebpf.Map{mapRounds: d.rounds}
	if err := spec.LoadAndAssign(&only, &ebpf.CollectionOptions{MapReplacements: rounds}); err != nil {
		return nil, explained("load the twin", err)
	}
	return only.Twin, nil
}
