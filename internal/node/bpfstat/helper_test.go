package bpfstat

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// needRoot skips the test without root. It fails the test if the kernel has no BPF.
func needRoot(t testing.TB) {
	t.Helper()
	need.Root(t)
	check.Error(t, rlimit.RemoveMemlock(), "")
}

func openMeter(t testing.TB) *Meter {
	t.Helper()
	m := must.Get(Open())(t)
	t.Cleanup(func() { must.OK(t, m.Close()) })
	return m
}

func list(t testing.TB, m *Meter, f Filter) *Listing {
	t.Helper()
	return must.Get(m.List(f))(t)
}

func newMap(t testing.TB, spec *ebpf.MapSpec) *ebpf.Map {
	t.Helper()
	a, err := ebpf.NewMap(spec)
	if err != nil {
		t.Fatalf("create map %s: %v", spec.Name, err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// using returns instructions that reference the given maps and return 1.
func using(maps ...*ebpf.Map) asm.Instructions {
	var out asm.Instructions
	for _, a := range maps {
		out = append(out, asm.LoadMapPtr(asm.R1, a.FD()))
	}
	return append(out, asm.Mov.Imm(asm.R0, 1), asm.Return())
}

func newProgram(t testing.TB, spec *ebpf.ProgramSpec) *ebpf.Program {
	t.Helper()
	if spec.License == "" {
		spec.License = "GPL"
	}
	p, err := ebpf.NewProgram(spec)
	if err != nil {
		t.Fatalf("load program %s: %v", spec.Name, err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func idOf(t testing.TB, p *ebpf.Program) uint32 {
	t.Helper()
	i := must.Get(p.Info())(t)
	id, ok := i.ID()
	must.That(t, ok, "no program ID from the kernel")
	return uint32(id)
}

// programsAre compares the programs of a listing with the expected ones.
func programsAre(t testing.TB, claim string, l *Listing, want []*ebpf.Program) {
	t.Helper()
	same := func(got record.Program, want *ebpf.Program) bool {
		i, err := want.Info()
		if err != nil {
			t.Error(err)
			return false
		}
		id, _ := i.ID()
		return got.ID == uint32(id)
	}
	check.That(t, slices.EqualFunc(l.Programs, want, same), "%s: %+v, want %v", claim, l.Programs, want)
}

func mapID(t testing.TB, a *ebpf.Map) uint32 {
	t.Helper()
	i := must.Get(a.Info())(t)
	id, ok := i.ID()
	must.That(t, ok, "no map ID from the kernel")
	return uint32(id)
}

// many loads programs with two maps each.
func many(t testing.TB, programs int) {
	t.Helper()
	for i := range programs {
		var maps []*ebpf.Map
		for j := range 2 {
			maps = append(maps, newMap(t, &ebpf.MapSpec{Name: fmt.Sprintf("m%d_%d", i, j), Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}))
		}
		newProgram(t, &ebpf.ProgramSpec{Name: fmt.Sprintf("many%d", i), Type: ebpf.SocketFilter, Instructions: using(maps...)})
	}
}

// memoryOf returns the memory of a program or map according to the kernel.
func memoryOf(t testing.TB, of interface{ FD() int }) (bytes int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", of.FD()))
	_, said, found := strings.Cut(string(text), "memlock:")
	_, scan := fmt.Sscan(said, &bytes)
	must.That(t, err == nil && found && scan == nil, "%s: %v, %v", text, err, scan)
	return bytes
}
