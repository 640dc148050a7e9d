package trace

import (
	"testing"

	"github.com/tare-bench/tare/record"
)

// A VMM and a file server are there from 1 s to 10 s, in which no process was born or
// ended; the engine's daemon was there all the time.
func TestTheTimeInWhichAVMMAloneWorksIsItsOwn(t *testing.T) {
	const s = int64(1e9)
	for name, c := range map[string]struct {
		vmm, files, all int64 // CPU time in the gap
		gap             int64
		want            bool
	}{
		"it alone":                       {9 * s, 0, 9 * s, 9 * s, true},
		"with its file server":           {6 * s, 3 * s, 9 * s, 9 * s, true},
		"nine tenths":                    {9 * s, 0, 10 * s, 9 * s, true},
		"no more than eight tenths":      {8 * s, 0, 10 * s, 9 * s, false},
		"hardly anybody":                 {s / 10, 0, s / 10, 9 * s, false},
		"for less than is told by it":    {s / 20, 0, s / 20, s / 20, false},
		"of whom nobody knows what used": {0, 0, -1, 9 * s, false},
	} {
		end := s + c.gap
		used := func(cpu int64) []record.BusyAt { return []record.BusyAt{{At: s}, {At: end, CPU: cpu}} }
		start := &record.Start{Method: record.MethodBPF, Began: 0, Ended: end, Processes: []record.StartProcess{
			{Pid: 1, Kind: record.KindDaemon, Name: "containerd"},
			{Pid: 2, Kind: record.KindVirtiofsd, Name: "virtiofsd", Born: s, Exec: s, Used: used(c.files)},
			{Pid: 3, Kind: record.KindVMM, Name: "qemu", Born: s, Exec: s, Used: used(c.vmm)},
		}}
		if c.all >= 0 {
			start.Busy = []record.BusyAt{{At: 0}, {At: s}, {At: end, CPU: c.all}}
		}
		var took int64
		for _, p := range Calls(start, "containerd") {
			if p.Kind == record.KindVMM {
				took += p.Ended - p.Began
			}
		}
		if want := map[bool]int64{true: c.gap}[c.want]; took != want {
			t.Errorf("%s: %d ns are the VMM's, want %d", name, took, want)
		}
	}
}
