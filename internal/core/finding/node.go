package finding

import (
	"fmt"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// The bounds above which the machine itself, or tare, is named as a suspect.
const (
	StealBound     = 0.01 // of all CPUs' time taken by the hypervisor
	PSICPUBound    = 0.25 // of the time, some task waited for a CPU, in rounds of one lane
	PSIIOBound     = 0.10 // likewise for I/O
	PSIMemoryBound = 0.01 // likewise for memory
	OwnBound       = 0.05 // of the machine's CPU time used by tare itself
)

// Node names a machine that was not quiet.
func (l *List) Node(rec *record.Record) {
	var steal, cpu, io, mem []float64
	for _, n := range rec.Nodes {
		if !n.Known || n.Phase != record.PhaseMeasure {
			continue
		}
		steal = append(steal, n.Steal)
		if n.HavePSI && n.Lanes == 1 { // more lanes press by themselves
			cpu, io, mem = append(cpu, n.PSICPU), append(io, n.PSIIO), append(mem, n.PSIMemory)
		}
	}
	report := func(code string, values []float64, bound float64, what, advice string) {
		if len(values) == 0 {
			return
		}
		q := stat.Quantiles(values, 0.5, 1)
		if mid, most := q[0], q[1]; mid > bound || most > 4*bound {
			l.Add(record.Finding{Code: code, Level: Warning,
				Message: fmt.Sprintf("%s: median round %.1f %%, worst %.1f %%; the bound is %.0f %%", what, 100*mid, 100*most, 100*bound), Advice: advice})
		}
	}
	report(Steal, steal, StealBound, "the hypervisor took CPU time away (steal)", "use a machine with CPUs of its own, or add rounds; long tails here are not the runtime's")
	report(Pressure, cpu, PSICPUBound, "tasks waited for a CPU in rounds of one lane (PSI)", "something else runs on this machine: stop it, or pin it away")
	report(Pressure, io, PSIIOBound, "tasks waited for I/O (PSI)", "something else uses the disk, or the runtime's state is on a slow one")
	report(Pressure, mem, PSIMemoryBound, "tasks waited for memory (PSI)", "the machine is short of memory: free some before believing a figure")
}
