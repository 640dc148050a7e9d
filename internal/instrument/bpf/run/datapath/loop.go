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

// maxHeavy is the maximum number of loop rounds per run, with two calls of bpf_loop.
// One round takes 1.5 to 10 ns, depending on the processor and on how the kernel calls
// back. TestRun measures it.
const maxHeavy = 2 << 23

// loop is an implementation of the work loop. Each has its own programs.
type loop struct {
	suffix string // of the program names in src/datapath.c
	most   int64
}

var (
	looped = loop{"", maxHeavy}         // with bpf_loop, Linux 5.17
	walked = loop{"_walked", 4096 * 16} // inside the program: MAX_WALKED
)

// theLoop returns the loop supported by the kernel.
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

// spec returns the named programs, built with this loop, and all maps.
func (l loop) spec(names ...string) (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("read the embedded programs: %w", err)
	}
	programs := make(map[string]*ebpf.ProgramSpec)
	for _, name := range names {
		p := spec.Programs[name+l.suffix]
		p.Name = name
		// Tools show the BTF name instead of the program name, which is cut to 15
		// bytes.
		btf.FuncMetadata(&p.Instructions[0]).Name = name
		programs[name] = p
	}
	spec.Programs = programs
	return spec, nil
}

// SetHeavy sets the number of loop rounds for all later runs. The programs stay
// attached and unchanged.
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

// frame is the input of a test run. The kernel requires at least an Ethernet header.
var frame [64]byte

// TestRun measures the loop at its current weight with BPF_PROG_TEST_RUN. It returns
// the time of one run, in whole ns.
// The kernel cannot test-run programs of these types. TestRun therefore uses a twin: a
// socket filter with the same code up to the end of the loop and the same map of
// rounds. It is loaded for this call only and never attached.
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
