package finding

import (
	"fmt"
	"slices"

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
	cold := slices.ContainsFunc(rec.Batches, func(b record.Batch) bool { return b.Dropped != "" }) ||
		slices.ContainsFunc(rec.Starts, func(s record.Start) bool { return s.Dropped != "" })
	for _, n := range rec.Nodes {
		if !n.Known || n.Phase != record.PhaseMeasure {
			continue
		}
		steal = append(steal, n.Steal)
		if n.HavePSI && n.Lanes <= 1 { // more lanes press by themselves
			cpu, mem = append(cpu, n.PSICPU), append(mem, n.PSIMemory)
			if !cold { // what begins cold waits for the disk by itself
				io = append(io, n.PSIIO)
			}
		}
	}
	l.Above(Steal, Rounds{"round", steal}, StealBound, StolenTime, "use a machine with CPUs of its own, or add rounds; long tails here are not the runtime's")
	l.Above(Pressure, Rounds{"round", cpu}, PSICPUBound, "tasks waited for a CPU in rounds of one lane (PSI)",
		Suspect(rec, "something else runs on this machine, unless the workload itself keeps its CPUs busy: stop it, or pin it away"))
	l.Above(Pressure, Rounds{"round", io}, PSIIOBound, "tasks waited for I/O (PSI)", "something else uses the disk, or the runtime's state is on a slow one")
	l.Above(Pressure, Rounds{"round", mem}, PSIMemoryBound, "tasks waited for memory (PSI)", "the machine is short of memory: free some before believing a figure")
}

// Suspect is the advice on tasks that waited for a CPU: tare's own limit where that held
// the run back, and otherwise what is given.
func Suspect(rec *record.Record, otherwise string) string {
	if ownThrottled(rec) != nil {
		return "tare's own CPU limit makes tasks wait, see " + OwnThrottled + ": lift it before looking for anything else"
	}
	return otherwise
}

// StolenTime is what steal is called everywhere.
const StolenTime = "the hypervisor took CPU time away (steal)"

// Rounds are shares of a time, 0 to 1, each of one thing such as a round.
type Rounds struct {
	Each   string
	Shares []float64
}

// Above names what was above a bound: at the median, far above it once, or in a tenth
// of the rounds and at least two, of which the median alone would show nothing.
func (l *List) Above(code string, of Rounds, bound float64, what, advice string) {
	n, above := len(of.Shares), 0
	for _, v := range of.Shares {
		if v > bound {
			above++
		}
	}
	if above == 0 {
		return
	}
	if mid, most := stat.Summarize(of.Shares, 0.95).Median, slices.Max(of.Shares); mid > bound || most > 4*bound || above >= max(2, (n+9)/10) {
		l.Add(record.Finding{Code: code, Level: Warning,
			Message: fmt.Sprintf("%s: median %s %.1f %%, worst %.1f %%; above the bound of %.0f %% in %d of %d", what, of.Each, 100*mid, 100*most, 100*bound, above, n), Advice: advice})
	}
}
