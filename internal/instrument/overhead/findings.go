package overhead

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// Findings of an overhead run.
const (
	foundOutside     = "charged-outside-pod"
	foundUnlimited   = "overhead-unlimited"
	foundLeaked      = "cgroup-leaked"
	foundResidual    = "residual-large"
	foundBlind       = "engine-blind"
	foundIncomplete  = "incomplete"
	foundVanished    = "vanished-while-read"
	foundMissed      = "missed-ticks"
	foundUnsettled   = "node-unsettled"
	foundNode        = "node-pressure"
	foundCalibration = "calibration-off"
	foundCacheHeavy  = "page-cache-heavy"
	foundNotEnough   = "check-not-enough"
	foundThrottled   = "throttled"
	foundBent        = "scaling-not-linear"
	foundOthers      = "others-unclear"
	foundOvercounted = "kernel-overcounted"
)

// The bounds above which something is worth a finding.
const (
	outsideBound   = 1 << 20  // bytes
	growthBound    = 64 << 20 // bytes, of a group without a limit, over idle
	growthShare    = 0.25     // and of what it had when idle
	residualBound  = 4 << 20  // bytes
	residualShare  = 0.02     // of the node's change; the larger of both, and the uncertainty
	blindShare     = 0.5      // of the truth that an engine reports
	missedShare    = 0.05     // of the ticks
	holdBound      = 1 << 20  // bytes that a held amount may be off, and
	holdShare      = 0.01     // of it
	spinShare      = 0.02     // of a spun amount
	throttledShare = 0.01     // of the phase and sandbox
	cacheBound     = 64 << 20 // bytes of page cache, and more than the sum
	kernelBound    = 4 << 20  // bytes of kernel memory charged beyond the node's, and the uncertainty
)

// adder takes findings.
type adder = func(record.Finding)

func (j *judging) findings() []record.Finding {
	var out finding.List
	add := out.Add
	out.TakeOver(j.rec)
	out.Whole(j.rec)
	j.failed(add)
	for i := range j.Targets {
		t := j.Targets[i].Name
		j.incomplete(t, add)
		j.left(t, add)
		j.sampling(t, add)
		if j.Targets[i].Kind != "host" { // which has no pod
			j.chargedOutside(t, add)
		}
		j.unlimited(t, add)
		j.blind(t, add)
		j.cells(t, add)
		j.overcounted(t, add)
	}
	j.nodePressure(add)
	for i := range j.Check {
		notEnough(&j.Check[i], add)
	}
	for _, s := range j.Scaling {
		if m := s.Slopes[ofMemory]; m.Bent {
			add(record.Finding{Code: foundBent, Level: finding.Note, Target: s.Target,
				Message: fmt.Sprintf("memory by sandbox lies on no line: %s each on average, but a robust slope is outside of the interval", finding.Bytes(m.Value)),
				Advice:  "look at the counts one by one; what a fixed part or a shared daemon takes is not shared out evenly"})
		}
	}
	return out
}

// failed sums up phases without figures.
func (j *judging) failed(add adder) {
	for _, t := range j.Tables {
		for _, c := range t.Cells {
			if c.Failed == 0 {
				continue
			}
			message := fmt.Sprintf("phase %s failed in %d of %d rounds; the first: %s", t.Phase, c.Failed, c.Failed+j.closed(c.Target, t.Phase, t.Sandboxes), c.Failure.Detail)
			if out := strings.TrimSpace(c.Failure.Output); out != "" {
				message += ": " + out
			}
			add(record.Finding{Code: finding.Failed, Level: finding.Error, Target: c.Target, Op: t.Phase, Lanes: t.Sandboxes, Message: message, Advice: j.advice(t.Phase, c.Failure), Tried: c.Failure.Command})
		}
	}
}

// killed is the exit code of a command that got SIGKILL.
const killed = 128 + 9

// advice is that of a failure, but where the container's own limit explains it: a
// load that was killed though it did no more than it was told.
func (j *judging) advice(phase string, f *record.Failure) string {
	p, err := ParsePhase(phase)
	if limit := j.Plan.Limits.Memory; err == nil && p.Kind == PhaseHold && f.Exit == killed && limit > 0 && limit <= p.Bytes {
		return fmt.Sprintf("the limit of %s is below what the load holds, %s and its own program: raise --limit memory, or hold less", finding.Bytes(float64(limit)), finding.Bytes(float64(p.Bytes)))
	}
	return finding.Advice(f)
}

// closed is how many rounds of a phase have books.
func (j *judging) closed(target, phase string, n int) int {
	count := 0
	for _, p := range j.phases {
		if p.failure == nil && p.visit.Target() == target && p.phase.Name == phase && p.phase.Sandboxes == n {
			count++
		}
	}
	return count
}

func (j *judging) incomplete(target string, add adder) {
	rounds, all, ended := 0, 0, 0
	var sum record.Problems
	for _, p := range j.phases {
		if p.failure != nil || p.visit.Target() != target {
			continue
		}
		all++
		q := &p.ledger.Problems
		ended += q.Gone + q.Reused
		if p.ledger.Complete && q.Backwards == 0 {
			continue
		}
		rounds++
		sum.Gone, sum.Reused, sum.Denied, sum.Broken, sum.Backwards = sum.Gone+q.Gone, sum.Reused+q.Reused, sum.Denied+q.Denied, sum.Broken+q.Broken, sum.Backwards+q.Backwards
		for _, e := range q.Examples {
			if len(sum.Examples) < 3 && !slices.Contains(sum.Examples, e) {
				sum.Examples = append(sum.Examples, e)
			}
		}
	}
	if rounds == 0 {
		if ended > 0 {
			add(record.Finding{Code: foundVanished, Level: finding.Note, Target: target,
				Message: fmt.Sprintf("%d processes or cgroups ended while the node was read, in %d phases", ended, all),
				Advice:  "their memory may be in the residual; stop what starts many short processes here"})
		}
		return
	}
	var kinds []string
	for _, k := range []struct {
		n    int
		what string
	}{{sum.Denied, "not permitted"}, {sum.Gone, "vanished while read"}, {sum.Reused, "pids used anew"}, {sum.Broken, "of an unknown form or not answered"}, {sum.Backwards, "counters that went back"}} {
		if k.n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", k.n, k.what))
		}
	}
	if kinds == nil {
		kinds = []string{"a process or a group without figures"}
	}
	message := fmt.Sprintf("not everything could be read in %d of %d phases: %s", rounds, all, strings.Join(kinds, ", "))
	if len(sum.Examples) > 0 {
		message += "; such as " + strings.Join(sum.Examples, "; ")
	}
	advice := "phases that were read whole count alone where there are any; elsewhere the figures are too small"
	if sum.Denied > 0 {
		advice += ". Run tare as root with CAP_SYS_PTRACE"
	}
	add(record.Finding{Code: foundIncomplete, Level: finding.Warning, Target: target, Message: message, Advice: advice})
}

func (j *judging) left(target string, add adder) {
	var all []string
	visits := 0
	for _, v := range j.visits {
		if v.After == nil || v.Target() != target || len(v.After.Left) == 0 {
			continue
		}
		visits++
		all = append(all, v.After.Left...)
	}
	if len(all) == 0 {
		return
	}
	add(record.Finding{Code: foundLeaked, Level: finding.Warning, Target: target,
		Message: fmt.Sprintf("%d cgroups were still there after the sandboxes were removed, in %d visits: %s", len(all), visits, firstOf(all, 3)),
		Advice:  "each costs kernel memory until it is removed: rmdir them, and report it to the runtime"})
}

func firstOf(all []string, n int) string {
	if len(all) > n {
		return strings.Join(all[:n], ", ") + ", …"
	}
	return strings.Join(all, ", ")
}

// sampling is about ticks that were missed and readings of a node in motion.
func (j *judging) sampling(target string, add adder) {
	missed, ticks, unsettled, read := 0, 0, 0, 0
	for _, v := range j.visits {
		if v.Target() != target {
			continue
		}
		rs := []*record.Reading{v.Before, v.After}
		for i := range v.Phases {
			rs = append(rs, v.Phases[i].End)
			if s := v.Phases[i].Series; s != nil {
				missed, ticks = missed+s.Missed, ticks+s.Missed+len(s.Times)
			}
		}
		for _, r := range rs {
			if r == nil {
				continue
			}
			read++
			if !r.Settled {
				unsettled++
			}
		}
	}
	if ticks > 0 && float64(missed) > missedShare*float64(ticks) {
		add(record.Finding{Code: foundMissed, Level: finding.Warning, Target: target,
			Message: fmt.Sprintf("%d of %d ticks were missed (%.0f %%): the series have holes", missed, ticks, 100*float64(missed)/float64(ticks)),
			Advice:  "use a longer --interval, or a machine with a CPU to spare"})
	}
	if unsettled > 0 {
		add(record.Finding{Code: foundUnsettled, Level: finding.Note, Target: target,
			Message: fmt.Sprintf("the node's memory was still changing at %d of %d readings", unsettled, read),
			Advice:  "stop what else runs, or raise --settle; the uncertainty of the residual tells how much it matters"})
	}
}

// chargedOutside tells in which phase most of a sandbox's memory was charged
// outside of the pod's group. What an overhead group is charged is the group's
// word; in a shared group only the processes tell.
func (j *judging) chargedOutside(target string, add adder) {
	var worst *Cell
	var where *Table
	most := 0.0
	j.each(target, func(t *Table, c *Cell) {
		if t.Sandboxes == 0 {
			return
		}
		if sum := float64(outsideSum(&c.Ledger, kindOf(t.Phase) == PhaseIdle)) / float64(t.Sandboxes); sum > most {
			worst, where, most = c, t, sum
		}
	})
	if worst == nil || most*float64(where.Sandboxes) <= outsideBound {
		return
	}
	what := outside(&worst.Ledger, kindOf(where.Phase) == PhaseIdle)
	level := finding.Note
	for _, g := range worst.Ledger.Groups {
		if g.Charge == record.ChargeOverhead && g.Usage > outsideBound {
			level = finding.Warning
			limit := "without a limit"
			if g.Limit > 0 {
				limit = "limit " + finding.Bytes(float64(g.Limit))
			}
			what = append(what, fmt.Sprintf("the group %s is charged %s, %s", firstOf(g.Paths, 2), finding.Bytes(float64(g.Usage)), limit))
		}
	}
	if most > growthBound {
		level = finding.Warning
	}
	if len(what) == 0 {
		what = []string{"many roles with less than 1 MiB each"}
	}
	add(record.Finding{Code: foundOutside, Level: level, Target: target, Op: where.Phase, Lanes: where.Sandboxes,
		Message: fmt.Sprintf("%s a sandbox is charged outside of the pod's cgroup: %s", finding.Bytes(most), strings.Join(what, "; ")),
		Advice:  "no limit of the pod bounds it, and the pod's statistics do not show it; with Kata set sandbox_cgroup_only=true, otherwise reserve it for the system (kube-reserved)"})
}

// outsideSum is the larger of both views for overhead groups, and the processes'
// for shared ones.
func outsideSum(l *ledger.Ledger, idle bool) int64 {
	var over, shared, charged int64
	for _, p := range l.Places {
		if !idle && p.Role == record.RoleRuntime {
			continue
		}
		switch p.Charge {
		case record.ChargeOverhead:
			over += p.Memory
		case record.ChargeShared:
			shared += p.Memory
		}
	}
	for _, g := range l.Groups {
		if g.Charge == record.ChargeOverhead {
			charged += g.Usage - g.Memory.Cache
		}
	}
	return shared + max(over, charged)
}

// each visits the cells of a target that have figures.
func (j *Judgement) each(target string, visit func(t *Table, c *Cell)) {
	for i := range j.Tables {
		for k := range j.Tables[i].Cells {
			if c := &j.Tables[i].Cells[k]; c.Target == target && c.Rounds > 0 {
				visit(&j.Tables[i], c)
			}
		}
	}
}

// unlimited finds an overhead group without a limit that grows under load: by the
// most that it had in the phase, for many loads have ended when it is read.
func (j *judging) unlimited(target string, add adder) {
	var at *Table
	var from, to int64
	var paths []string
	j.each(target, func(t *Table, c *Cell) {
		idle := j.idleOf(target, t.Sandboxes)
		if idle == nil || kindOf(t.Phase) == PhaseIdle {
			return
		}
		now, then := groupRow(&c.Ledger, record.ChargeOverhead), groupRow(&idle.Ledger, record.ChargeOverhead)
		if now == nil || then == nil || now.Limit > 0 {
			return
		}
		most := max(now.Usage, now.Highest)
		if s := c.series(record.SeriesOverheadMemory); s != nil {
			most = max(most, int64(slices.Max(s.Series.Values))) // never empty
		}
		if grown := most - then.Usage; grown > growthBound && float64(grown) > growthShare*float64(then.Usage) && grown > to-from {
			at, from, to, paths = t, then.Usage, most, now.Paths
		}
	})
	if at == nil {
		return
	}
	add(record.Finding{Code: foundUnlimited, Level: finding.Warning, Target: target, Op: at.Phase, Lanes: at.Sandboxes,
		Message: fmt.Sprintf("the overhead group %s has no limit and grew from %s idle to %s in phase %s", firstOf(paths, 1), finding.Bytes(float64(from)), finding.Bytes(float64(to)), at.Phase),
		Advice:  "a load inside can take the node's memory this way: set sandbox_cgroup_only=true with a RuntimeClass overhead, or bound the guest's memory"})
}

func groupRow(l *ledger.Ledger, charge record.Charge) *ledger.GroupRow {
	for i := range l.Groups {
		if l.Groups[i].Charge == charge {
			return &l.Groups[i]
		}
	}
	return nil
}

// blind finds engines that see less than half, in the phase where most is hidden.
func (j *judging) blind(target string, add adder) {
	var worst *ledger.EngineRow
	var where *Table
	j.each(target, func(t *Table, c *Cell) {
		for i := range c.Ledger.Engine {
			r := &c.Ledger.Engine[i]
			if r.Reported < 0 || r.Truth <= 0 || float64(r.Reported) >= blindShare*float64(r.Truth) {
				continue
			}
			if worst == nil || r.Truth-r.Reported > worst.Truth-worst.Reported {
				worst, where = r, t
			}
		}
	})
	if worst == nil {
		return
	}
	level := finding.Note
	if worst.Truth-worst.Reported > growthBound {
		level = finding.Warning
	}
	add(record.Finding{Code: foundBlind, Level: level, Target: target, Op: where.Phase, Lanes: where.Sandboxes,
		Message: fmt.Sprintf("%s reports %s where the sandboxes have %s (%.0f %%)", worst.Source, finding.Bytes(float64(worst.Reported)), finding.Bytes(float64(worst.Truth)), 100*float64(worst.Reported)/float64(worst.Truth)),
		Advice:  "do not size nodes or alerts by it; it shows the container's cgroup alone, not shims, VMMs and their memory"})
}

// cells are the findings of single phases, each at its worst.
func (j *judging) cells(target string, add adder) {
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
				if share := off / c.Expected; share > spinShare {
					level, advice := finding.Warning, "the CPU times of this target are as far off: was the load throttled, or the machine short of CPUs?"
					if guestRole(l) != "" && c.Measured > c.Expected {
						level, advice = finding.Note, "what is above it the sentry or the VMM used to run the load: it is the sandbox's, and cannot be told from the load's"
					}
					put(share/spinShare, t, foundCalibration, level, fmt.Sprintf("the load was told to use %.3g CPUs, and %.4g were found (%+.1f %%)", c.Expected, c.Measured, 100*(c.Measured/c.Expected-1)), advice)
				}
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
			if took := j.length(target, t); g.Charge != record.ChargeShared && took > 0 {
				if share := float64(g.Throttled) / took / float64(max(t.Sandboxes, 1)); share > throttledShare {
					put(share, t, foundThrottled, finding.Warning, fmt.Sprintf("the sandboxes were throttled for %.1f %% of the phase each", 100*share),
						"the CPU limit cuts the load and what stands beside it in the same group: raise --limit cpu, or read the CPU figures as bounded")
				}
			}
		}
	})
	for _, code := range []string{foundResidual, foundCalibration, foundCacheHeavy, foundThrottled, foundOthers} {
		if f, ok := found[code]; ok {
			add(f.Finding)
		}
	}
}

// overcounted tells where more kernel memory was charged by name than the node's
// books grew by, at its worst. On a node that was still changing this is no
// wonder, and nothing is told.
func (j *judging) overcounted(target string, add adder) {
	var worst *closedPhase
	for _, p := range j.phases {
		if p.failure != nil || p.visit.Target() != target || !p.visit.Before.Settled || !p.phase.End.Settled {
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
	add(record.Finding{Code: foundOvercounted, Level: finding.Warning, Target: target, Op: worst.phase.Name, Lanes: worst.phase.Sandboxes,
		Message: fmt.Sprintf("%s of kernel memory are counted by name, %s more than the node's grew by (allowed: %s with its uncertainty of %s)",
			finding.Bytes(float64(charged)), finding.Bytes(float64(-l.Uncharged)), finding.Bytes(float64(kernelBound+l.Uncertainty)), finding.Bytes(float64(l.Uncertainty))),
		Advice: "either it is counted twice, or something else gave kernel memory back: repeat on a quiet node, and read the kernel row as an upper bound"})
}

// length is how long a phase took, ns, on average over the rounds.
func (j *judging) length(target string, t *Table) float64 {
	sum, n := 0.0, 0
	for _, p := range j.phases {
		if p.failure == nil && p.visit.Target() == target && p.phase.Name == t.Phase && p.phase.Sandboxes == t.Sandboxes && p.phase.Begin != nil {
			sum, n = sum+float64(p.phase.End.Time-p.phase.Begin.Time), n+1
		}
	}
	return sum / float64(max(n, 1))
}

// nodePressure names a node that was short of something while sandboxes were
// idle or held memory: then the load inside is not the cause.
func (j *judging) nodePressure(add adder) {
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
		values       []float64
		bound        float64
		what, advice string
	}{
		{steal, finding.StealBound, "the hypervisor took CPU time away (steal)", "use a machine with CPUs of its own"},
		{cpu, finding.PSICPUBound, "tasks waited for a CPU (PSI)", "something else runs on this machine: stop it, or pin it away"},
		{io, finding.PSIIOBound, "tasks waited for I/O (PSI)", "something else uses the disk"},
		{mem, finding.PSIMemoryBound, "tasks waited for memory (PSI)", "the machine is short of memory: free some before believing a figure"},
	} {
		if len(x.values) == 0 {
			continue
		}
		if mid, most := figure.MedianOf(x.values).Value, slices.Max(x.values); mid > x.bound || most > 4*x.bound {
			add(record.Finding{Code: foundNode, Level: finding.Warning,
				Message: fmt.Sprintf("%s in phases without I/O: median %.1f %%, worst %.1f %%; the bound is %.0f %%", x.what, 100*mid, 100*most, 100*x.bound), Advice: x.advice})
		}
	}
}

// notEnough tells in which phases an overhead that was to be checked broke.
func notEnough(c *Check, add adder) {
	if c.Enough {
		return
	}
	var broke []string
	advice := "use the recommended RuntimeClass"
	for _, p := range c.Phases {
		if !p.Measured {
			broke = append(broke, fmt.Sprintf("phase %s with %s was not measured", p.Phase, sandboxesOf(p.Sandboxes)))
			advice = "repeat what was not measured, the other findings tell why; only then is a recommended RuntimeClass whole"
			continue
		}
		var short []string
		if !p.MemoryEnough {
			short = append(short, "memory "+finding.Bytes(float64(p.Memory)))
		}
		switch {
		case !p.CPUEnough && p.CPUUnknown:
			short = append(short, "an amount of cpu that is not known")
		case !p.CPUEnough:
			short = append(short, fmt.Sprintf("cpu %.0fm", p.CPU))
		}
		if short != nil {
			broke = append(broke, fmt.Sprintf("phase %s with %s needs %s", p.Phase, sandboxesOf(p.Sandboxes), strings.Join(short, " and ")))
		}
	}
	if broke == nil {
		broke = []string{"no phase was long enough to measure its cpu"}
	}
	add(record.Finding{Code: foundNotEnough, Level: finding.Error, Target: c.Target,
		Message: fmt.Sprintf("an overhead of %dm and %s is not enough: %s", c.CPU, finding.Bytes(float64(c.Memory)), strings.Join(broke, "; ")),
		Advice:  advice})
}
