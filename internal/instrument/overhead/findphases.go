package overhead

import (
	"fmt"
	"math"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/record"
)

// cells are the findings of single phases, each at its worst.
func (j *judging) cells(target string) {
	type worst struct {
		by float64
		record.Finding
	}
	found := map[string]worst{}
	put := func(by float64, t *Table, code, level, message, advice string) {
		if old, ok := found[code]; !ok || by > old.by {
			found[code] = worst{by, record.Finding{Code: code, Level: level, Target: target, Op: t.Phase, Lanes: t.Sandboxes, Message: message, Advice: advice}}
		}
	}
	j.each(target, func(t *Table, c *Cell) {
		l := &c.Ledger
		allowed := max(residualShare*math.Abs(float64(l.Node)), residualBound) + float64(l.Uncertainty)
		if off := math.Abs(float64(l.Residual)); off > allowed {
			by := l.ResidualBy
			put(off/allowed, t, foundResidual, finding.Warning,
				fmt.Sprintf("%s of the node's change of %s is unexplained (allowed: %s with its uncertainty of %s); by kind anonymous %s, shared %s",
					finding.Bytes(float64(l.Residual)), finding.Bytes(float64(l.Node)), finding.Bytes(allowed), finding.Bytes(float64(l.Uncertainty)), finding.Bytes(float64(by.Anon)), finding.Bytes(float64(by.Shmem))),
				"something else on the node changed, or a process of the target was not recognised: see tare overhead --explain, and repeat on a quiet node")
		}
		if off := math.Abs(c.Measured - c.Expected); c.Expected > 0 {
			if kindOf(t.Phase) == PhaseSpin {
				j.spin(c, put, t)
			} else if allowed := holdBound + holdShare*c.Expected; off > allowed {
				put(off/allowed, t, foundCalibration, finding.Warning, fmt.Sprintf("the load was told to hold %s, and %s were found", finding.Bytes(c.Expected), finding.Bytes(c.Measured)),
					"the memory of this target is as far off: did it swap, or does its guest keep memory from an earlier load?")
			}
		}
		if off := l.OthersUnclear(); off > 0 {
			put(float64(off), t, foundOthers, finding.Note,
				fmt.Sprintf("what all other processes took is unclear: %s by their own RssAnon, %s by the node's anonymous memory less the target's; the uncertainty holds the difference", finding.Bytes(float64(l.Others)), finding.Bytes(float64(l.OthersNode))),
				"RssAnon counts pages that forks share once for each of them: stop what forks on this node, and repeat")
		}
		if cache := l.Cache.Charged; cache > cacheBound && cache > l.Sum {
			put(float64(cache), t, foundCacheHeavy, finding.Note, fmt.Sprintf("%s of page cache are charged to the sandboxes, more than the %s that do not give way", finding.Bytes(float64(cache)), finding.Bytes(float64(l.Sum))),
				"memory.usage and what engines make of it mostly show cache here: judge by the roles")
		}
		for _, g := range l.Groups {
			if took := c.length(); g.Charge != record.ChargeShared && took > 0 {
				if share := float64(g.Throttled) / took / float64(max(t.Sandboxes, 1)); share > throttledShare {
					put(share, t, foundThrottled, finding.Warning, fmt.Sprintf("the sandboxes were throttled for %.1f %% of the phase each", 100*share),
						"the CPU limit cuts the load and what stands beside it in the same group: raise --limit cpu, or read the CPU figures as bounded")
				}
			}
		}
	})
	for _, code := range []string{foundResidual, foundCalibration, foundShort, foundCacheHeavy, foundThrottled, foundOthers} {
		if f, ok := found[code]; ok {
			j.found.Add(f.Finding)
		}
	}
}

// spin holds what was found of a spinning load against what it used. Where it says
// itself that it came short, it does so of a longer time than it was watched for.
func (j *judging) spin(c *Cell, put func(by float64, t *Table, code, level, message, advice string), t *Table) {
	used, short := c.used()
	bound, what := spinShare, fmt.Sprintf("the load was told to use %.3g CPUs", c.Expected)
	if short {
		bound, what = shortShare, fmt.Sprintf("the load says that it used %.4g CPUs", used)
		put(c.Expected/used, t, foundShort, finding.Note, fmt.Sprintf("the load was told to use %.3g CPUs, and says itself that it came to %.4g (%+.1f %%)", c.Expected, used, 100*(used/c.Expected-1)),
			"it was throttled, or others had the CPUs: repeat on a machine with CPUs to spare; what was found is held against what the load used")
	}
	share := math.Abs(c.Measured-used) / used
	if share <= bound {
		return
	}
	level, advice := finding.Warning, "the load or the CPU times of this target are as far off: was the load throttled, or the machine short of CPUs?"
	if guestRole(&c.Ledger) != "" && c.Measured > used {
		level, advice = finding.Note, "what is above it the sentry or the VMM used to run the load: it is the sandbox's, and cannot be told from the load's"
	}
	put(share/bound, t, foundCalibration, level, fmt.Sprintf("%s, and %.4g were found (%+.1f %%)", what, c.Measured, 100*(c.Measured/used-1)), advice)
}

// overcounted tells where more kernel memory was charged by name than the node's
// books grew by, at its worst. On a node that was still changing this is no
// wonder, and nothing is told.
func (j *judging) overcounted(target string) {
	var worst *closedPhase
	for _, p := range j.phases {
		if p.failure != nil || p.visit.Target != target || !p.visit.Before.Settled || !p.phase.End.Settled {
			continue
		}
		if l := &p.ledger; l.Uncharged < -(kernelBound+l.Uncertainty) && (worst == nil || l.Uncharged < worst.ledger.Uncharged) {
			worst = p
		}
	}
	if worst == nil {
		return
	}
	l := &worst.ledger
	charged := rowOf(l, record.RoleKernel).Memory.Kernel
	j.found.Add(record.Finding{Code: foundOvercounted, Level: finding.Warning, Target: target, Op: worst.phase.Name, Lanes: worst.phase.Sandboxes,
		Message: fmt.Sprintf("%s of kernel memory are counted by name, %s more than the node's grew by (allowed: %s with its uncertainty of %s)",
			finding.Bytes(float64(charged)), finding.Bytes(float64(-l.Uncharged)), finding.Bytes(float64(kernelBound+l.Uncertainty)), finding.Bytes(float64(l.Uncertainty))),
		Advice: "either it is counted twice, or something else gave kernel memory back: repeat on a quiet node, and read the kernel row as an upper bound"})
}

// length is how long the phase took, ns, on average over the rounds.
func (c *Cell) length() float64 {
	sum, n := 0.0, 0
	for _, p := range c.closed {
		if p.phase.Begin != nil {
			sum, n = sum+float64(p.phase.End.Time-p.phase.Begin.Time), n+1
		}
	}
	return sum / float64(max(n, 1))
}

// nodePressure names a node that was short of something while sandboxes were
// idle or held memory: then the load inside is not the cause.
func (j *judging) nodePressure() {
	var steal, cpu, io, mem []float64
	for _, p := range j.phases {
		kind := kindOf(p.phase.Name)
		if p.failure != nil || p.phase.Begin == nil || kind == PhaseFio || kind == "" {
			continue
		}
		l := &p.ledger
		steal = append(steal, l.NodeSteal/float64(max(j.rec.Header.Environment.CPUs, 1)))
		if !l.PSI.Known {
			continue
		}
		mem = append(mem, l.PSI.Memory)
		io = append(io, l.PSI.IO)
		if kind != PhaseSpin { // which presses by itself
			cpu = append(cpu, l.PSI.CPU)
		}
	}
	for _, x := range []struct {
		shares       []float64
		bound        float64
		what, advice string
	}{
		{steal, finding.StealBound, finding.StolenTime, "use a machine with CPUs of its own"},
		{cpu, finding.PSICPUBound, "tasks waited for a CPU (PSI)", "something else runs on this machine: stop it, or pin it away"},
		{io, finding.PSIIOBound, "tasks waited for I/O (PSI)", "something else uses the disk"},
		{mem, finding.PSIMemoryBound, "tasks waited for memory (PSI)", "the machine is short of memory: free some before believing a figure"},
	} {
		j.found.Above(foundNode, finding.Rounds{Each: "phase", Shares: x.shares}, x.bound, x.what+" in phases without I/O", x.advice)
	}
}
