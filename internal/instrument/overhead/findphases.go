package overhead

import (
	"fmt"
	"math"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// put adds a finding about one phase. by is its severity: per code only the worst is kept.
type put func(by float64, code, level, message, advice string)

// rules are the checks of one target in one phase. ofPhases are their findings in order.
var (
	rules = []func(j *Judgement, c *Cell, put put){(*Judgement).chargedOutside, (*Judgement).unlimited, (*Judgement).blind, (*Judgement).residual,
		(*Judgement).calibration, (*Judgement).cacheHeavy, (*Judgement).throttled, (*Judgement).othersUnclear}
	ofPhases = []string{foundOutside, foundUnlimited, foundBlind, foundResidual, foundCalibration, foundShort, foundCacheHeavy, foundThrottled, foundOthers}
)

// phasesOf adds the findings about a target's phases, the worst per code.
func (j *Judgement) phasesOf(target *record.Target) {
	worst, found := map[string]float64{}, map[string]record.Finding{}
	for _, c := range j.cells() {
		if c.Target != target.Name || c.Rounds == 0 {
			continue
		}
		for _, look := range rules {
			look(j, c, func(by float64, code, level, message, advice string) {
				if old, is := worst[code]; !is || by > old {
					worst[code] = by
					found[code] = record.Finding{Code: code, Level: level, Target: target.Name, Op: c.Phase, Lanes: c.Sandboxes, Message: message, Advice: advice}
				}
			})
		}
	}
	for _, code := range ofPhases {
		if f, is := found[code]; is && (code != foundOutside || target.Kind != "host") { // the host has no pod
			j.Findings.Add(f)
		}
	}
}

func (j *Judgement) residual(c *Cell, put put) {
	l := &c.Ledger
	allowed := max(residualShare*math.Abs(float64(l.Node)), residualBound) + float64(l.Uncertainty)
	if off := math.Abs(float64(l.Residual)); off > allowed {
		put(off/allowed, foundResidual, finding.Warning,
			fmt.Sprintf("%s of the node's change of %s is unexplained (allowed: %s with its uncertainty of %s); by kind anonymous %s, shared %s",
				finding.Bytes(l.Residual), finding.Bytes(l.Node), finding.Bytes(allowed), finding.Bytes(l.Uncertainty), finding.Bytes(l.ResidualBy.Anon), finding.Bytes(l.ResidualBy.Shmem)),
			"something else on the node changed, or a process of the target was not recognised: see --details, and repeat on a quiet node")
	}
}

func (j *Judgement) othersUnclear(c *Cell, put put) {
	l := &c.Ledger
	if off := l.OthersUnclear(); off > 0 {
		put(float64(off), foundOthers, finding.Note,
			fmt.Sprintf("memory of other processes is unclear: %s by their own RssAnon, %s by the node's anonymous memory less the target's; the uncertainty includes the difference", finding.Bytes(l.Others), finding.Bytes(l.OthersNode)),
			"RssAnon counts a page shared by fork once per process: stop programs that fork on this node, and repeat")
	}
}

func (j *Judgement) cacheHeavy(c *Cell, put put) {
	if cache, sum := c.Ledger.Cache.Charged, c.Ledger.Sum; cache > cacheBound && cache > sum {
		put(float64(cache), foundCacheHeavy, finding.Note, fmt.Sprintf("%s of page cache are charged to the sandboxes, more than the %s that are not reclaimable", finding.Bytes(cache), finding.Bytes(sum)),
			"memory.usage and engine figures based on it mostly show cache here: use memory by role")
	}
}

func (j *Judgement) throttled(c *Cell, put put) {
	for _, g := range c.Ledger.Groups {
		share := g.Over.Of("group-throttled").Value / c.length() / float64(max(c.Sandboxes, 1))
		if g.Charge != record.ChargeShared && c.length() > 0 && share > throttledShare {
			put(share, foundThrottled, finding.Warning, fmt.Sprintf("the sandboxes were throttled for %.1f %% of the phase each", 100*share),
				"the CPU limit throttles the load and other processes in the same group: raise --limit cpu, or treat the CPU figures as capped")
		}
	}
}

// calibration compares measured with requested load. If a spinning load got too little CPU
// time, it compares with the load's own report, which covers a longer time.
func (j *Judgement) calibration(c *Cell, put put) {
	expected, measured := c.load("expected"), c.load("measured")
	if expected <= 0 {
		return
	}
	if kindOf(c.Phase) != PhaseSpin {
		if off, allowed := math.Abs(measured-expected), holdBound+holdShare*expected; off > allowed {
			put(off/allowed, foundCalibration, finding.Warning, fmt.Sprintf("the load was configured to hold %s, but %s were measured", finding.Bytes(expected), finding.Bytes(measured)),
				"the memory figures of this target are off by as much: did it swap, or does its guest keep memory from an earlier load?")
		}
		return
	}
	used, short := c.used()
	bound, what := spinShare, fmt.Sprintf("the load was configured to use %.3g CPUs", expected)
	if short {
		bound, what = shortShare, fmt.Sprintf("the load reports %.4g CPUs", used)
		put(expected/used, foundShort, finding.Note, fmt.Sprintf("the load was configured to use %.3g CPUs, but reports %.4g (%+.1f %%)", expected, used, 100*(used/expected-1)),
			"it was throttled, or other processes had the CPUs: repeat on a machine with spare CPUs; measured usage is compared with the load's report")
	}
	share := math.Abs(measured-used) / used
	if share <= bound {
		return
	}
	level, advice := finding.Warning, "the load or the CPU figures of this target are off by as much: was the load throttled, or the machine short of CPUs?"
	if guestRole(&c.Ledger) != "" && measured > used {
		level, advice = finding.Note, "the sentry or VMM used the excess to run the load: it belongs to the sandbox, but is not separable from the load"
	}
	put(share/bound, foundCalibration, level, fmt.Sprintf("%s, but %.4g were measured (%+.1f %%)", what, measured, 100*(measured/used-1)), advice)
}

// overcounted adds a finding if more kernel memory was charged than the node's counters
// grew by, for the worst phase. It ignores nodes that had not settled.
func (j *Judgement) overcounted(target string) {
	var worst *ledger.Phase
	for _, p := range j.booked(target) {
		l := &p.Ledger
		if p.Visit.Before.Settled && p.End.Settled && l.Uncharged < -(kernelBound+l.Uncertainty) && (worst == nil || l.Uncharged < worst.Ledger.Uncharged) {
			worst = p
		}
	}
	if worst == nil {
		return
	}
	l := &worst.Ledger
	j.Findings.Add(record.Finding{Code: foundOvercounted, Level: finding.Warning, Target: target, Op: worst.Name, Lanes: worst.Sandboxes,
		Message: fmt.Sprintf("%s of kernel memory are charged, %s more than the growth of the node's (allowed: %s with its uncertainty of %s)",
			finding.Bytes(rowOf(l, record.RoleKernel).Memory.Kernel), finding.Bytes(-l.Uncharged), finding.Bytes(kernelBound+l.Uncertainty), finding.Bytes(l.Uncertainty)),
		Advice: "either it is counted twice, or other processes freed kernel memory: repeat on a quiet node, and read the kernel row as an upper bound"})
}

// length returns the mean duration of the phase over the rounds, in ns.
func (c *Cell) length() float64 {
	sum, n := 0.0, 0
	for _, p := range c.closed {
		if p.Begin != nil {
			sum, n = sum+float64(p.End.Time-p.Begin.Time), n+1
		}
	}
	return sum / float64(max(n, 1))
}

// nodePressure adds a finding if the node was short of a resource while sandboxes were idle
// or held memory. The load inside is not the cause then.
func (j *Judgement) nodePressure() {
	var steal, cpu, io, mem []float64
	for _, p := range j.phases {
		kind := kindOf(p.Name)
		if p.Failure != nil || p.Begin == nil || kind == PhaseFio || kind == "" {
			continue
		}
		host := p.Ledger.Host
		steal = append(steal, host.Of("node-steal").Value/float64(max(j.Record.Header.Environment.CPUs, 1)))
		pressure := func(resource string) *figure.Figure { return host.Of("node-pressure", "resource", resource) }
		if !pressure("cpu").Known() {
			continue
		}
		mem, io = append(mem, pressure("memory").Value), append(io, pressure("io").Value)
		if kind != PhaseSpin && kind != PhaseLoad { // these phases cause pressure themselves
			cpu = append(cpu, pressure("cpu").Value)
		}
	}
	for _, x := range []struct {
		shares       []float64
		bound        float64
		what, advice string
	}{
		{steal, finding.StealBound, finding.StolenTime, "use a machine with CPUs of its own"},
		{cpu, finding.PSICPUBound, "tasks waited for a CPU (PSI)", finding.Suspect(j.Record, "something else runs on this machine: stop it, or pin it away")},
		{io, finding.PSIIOBound, "tasks waited for I/O (PSI)", "something else uses the disk"},
		{mem, finding.PSIMemoryBound, "tasks waited for memory (PSI)", "the machine is short of memory: free some before trusting the figures"},
	} {
		j.Findings.Above(foundNode, finding.Rounds{Each: "phase", Shares: x.shares}, x.bound, x.what+" in phases without I/O", x.advice)
	}
}
