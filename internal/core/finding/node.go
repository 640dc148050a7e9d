package finding

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// Limits above which other load on the machine, or tare itself, may disturb the figures.
const (
	StealBound     = 0.01 // share of CPU time stolen by the hypervisor, over all CPUs
	PSICPUBound    = 0.25 // share of time in which some task waited for a CPU, in rounds with one lane
	PSIIOBound     = 0.10 // the same for I/O
	PSIMemoryBound = 0.01 // the same for memory
	OwnBound       = 0.05 // share of the machine's CPU time used by tare
)

// Node adds findings about other load on the machine.
func (l *List) Node(rec *record.Record) {
	var steal, cpu, io, mem []float64
	cold := slices.ContainsFunc(rec.Batches, func(b record.Batch) bool { return b.Dropped != "" }) ||
		slices.ContainsFunc(rec.Starts, func(s record.Start) bool { return s.Dropped != "" })
	for _, n := range rec.Nodes {
		if !n.Known || n.Phase != record.PhaseMeasure {
			continue
		}
		steal = append(steal, n.Steal)
		if n.HavePSI && n.Lanes <= 1 { // several lanes cause pressure themselves
			cpu, mem = append(cpu, n.PSICPU), append(mem, n.PSIMemory)
			if !cold { // cold starts cause I/O pressure themselves
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

// Suspect returns the advice for tasks that waited for a CPU. If tare's CPU limit throttled the
// run, the advice is to lift that limit.
func Suspect(rec *record.Record, otherwise string) string {
	if ownThrottled(rec) != nil {
		return "tare's own CPU limit makes tasks wait, see " + OwnThrottled + ": remove it before looking for other causes"
	}
	return otherwise
}

// StolenTime is the text for steal time in all reports.
const StolenTime = "the hypervisor took CPU time away (steal)"

// Rounds has shares of time, from 0 to 1. Each names what one share belongs to, such as a
// round.
type Rounds struct {
	Each   string
	Shares []float64
}

// Above adds a finding if the shares exceed a bound. They do so in one of three ways: the
// median exceeds it, one round exceeds it by a factor of four, or a tenth of the rounds and at
// least two exceed it.
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
