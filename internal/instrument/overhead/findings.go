package overhead

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// Codes of findings of an overhead run.
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
	foundShort       = "load-short"
	foundCacheHeavy  = "page-cache-heavy"
	foundNotEnough   = "check-not-enough"
	foundNotShown    = "check-not-shown"
	foundThrottled   = "throttled"
	foundBent        = "scaling-not-linear"
	foundUnclaimed   = "helpers-unclaimed"
	foundOthers      = "others-unclear"
	foundOvercounted = "kernel-overcounted"
)

// Thresholds of findings.
const (
	outsideBound   = 1 << 20  // bytes
	growthBound    = 64 << 20 // bytes above idle, for a group without a limit
	growthShare    = 0.25     // of its idle usage; both have to be exceeded
	residualBound  = 4 << 20  // bytes
	residualShare  = 0.02     // of the node's change; the largest of both and the uncertainty applies
	blindShare     = 0.5      // share of the ledger's value that an engine reports
	missedShare    = 0.05     // of the samples
	holdBound      = 1 << 20  // bytes of deviation from a held amount; holdShare has to be exceeded, too
	holdShare      = 0.01     // of the held amount
	spinShare      = 0.02     // of a spun amount
	shortShare     = 0.2      // of the shortfall that a load reports, because its time is longer
	throttledShare = 0.01     // of the phase and sandbox
	cacheBound     = 64 << 20 // bytes of page cache; it also has to exceed the sum
	unclaimedBound = 0.5      // processes per sandbox: minimum slope, and maximum half-width of its interval
	kernelBound    = 4 << 20  // bytes of charged kernel memory above the node's; plus the uncertainty
)

func (j *Judgement) findings() {
	j.Findings.TakeOver(j.Record)
	j.Findings.Whole(j.Record)
	j.failed()
	for t := range ledger.Each(j.Targets) {
		j.incomplete(t.Name)
		j.left(t.Name)
		j.sampling(t.Name)
		j.phasesOf(t)
		j.overcounted(t.Name)
	}
	j.nodePressure()
	for c := range ledger.Each(j.Check) {
		if c.Answer != Enough {
			j.checked(c)
		}
	}
	for s := range ledger.Each(j.Scaling) {
		j.unclaimed(s)
		if m := s.slope("memory"); m.Verdict == onNoLine {
			j.add(foundBent, finding.Note, s.Target, fmt.Sprintf("memory is not linear in the number of sandboxes: %s each on average, but a robust slope is outside the interval", finding.Bytes(m.Value)),
				"compare the counts individually: the usage of a fixed part or a shared daemon is not divided evenly")
		}
	}
}

// add adds a finding about a target in all its phases.
func (j *Judgement) add(code, level, target, message, advice string) {
	j.Findings.Add(record.Finding{Code: code, Level: level, Target: target, Message: message, Advice: advice})
}

// failed adds findings for phases without figures.
func (j *Judgement) failed() {
	for _, c := range j.cells() {
		if c.Failed == 0 {
			continue
		}
		message := fmt.Sprintf("phase %s failed in %d of %d rounds; the first: %s", c.Phase, c.Failed, c.Failed+len(c.closed), c.Failure.Detail)
		if out := strings.TrimSpace(c.Failure.Output); out != "" {
			message += ": " + out
		}
		j.Findings.Add(record.Finding{Code: finding.Failed, Level: finding.Error, Target: c.Target, Op: c.Phase, Lanes: c.Sandboxes, Message: message, Advice: j.advice(c.Phase, c.Failure), Tried: c.Failure.Command})
	}
}

// killed is the exit code of a command after SIGKILL.
const killed = 128 + 9

// advice returns the advice for a failure. If a hold load was killed and the container's
// limit is below the requested amount, the advice is about the limit.
func (j *Judgement) advice(phase string, f *record.Failure) string {
	p, _ := ParsePhase(phase)
	if limit := j.Plan.Limits.Memory; p.Kind == PhaseHold && f.Exit == killed && limit > 0 && limit <= p.Bytes {
		return fmt.Sprintf("the limit of %s is below the load's memory, %s plus its program: raise --limit memory, or hold less", finding.Bytes(limit), finding.Bytes(p.Bytes))
	}
	return finding.Advice(f)
}

func (j *Judgement) incomplete(target string) {
	rounds, all, ended := 0, 0, 0
	var sum record.Problems
	for _, p := range j.booked(target) {
		all++
		q := &p.Ledger.Problems
		ended += q.Gone + q.Reused
		if p.Ledger.Complete && q.Backwards == 0 {
			continue
		}
		rounds++
		sum.Add(q)
	}
	if rounds == 0 {
		if ended > 0 {
			j.add(foundVanished, finding.Note, target, fmt.Sprintf("%d processes or cgroups ended while the node was read, in %d phases", ended, all),
				"their memory may be in the residual: stop programs that start many short-lived processes")
		}
		return
	}
	message := fmt.Sprintf("not everything could be read in %d of %d phases: %s", rounds, all, cmp.Or(amounts(&sum), "a process or a group without figures"))
	if len(sum.Examples) > 0 {
		message += "; such as " + strings.Join(sum.Examples[:min(len(sum.Examples), 3)], "; ")
	}
	advice := "only complete phases count, if there are any; otherwise the figures are too small"
	if sum.Denied > 0 {
		advice += ". Run tare as root with CAP_SYS_PTRACE"
	}
	j.add(foundIncomplete, finding.Warning, target, message, advice)
}

func (j *Judgement) left(target string) {
	var all []string
	visits := 0
	for _, v := range j.visits {
		if v.After == nil || v.Target != target || len(v.After.Left) == 0 {
			continue
		}
		visits++
		all = append(all, v.After.Left...)
	}
	// The finding runtime-left lists the cgroups that the run removed.
	if slices.ContainsFunc(j.Record.Findings, func(f record.Finding) bool { return f.Code == finding.RuntimeLeft && f.Target == target }) {
		all = slices.DeleteFunc(all, func(path string) bool { return strings.HasPrefix(path, "/kata_overhead/") })
	}
	if len(all) == 0 {
		return
	}
	j.add(foundLeaked, finding.Warning, target, fmt.Sprintf("%d cgroups remained after the sandboxes were removed, in %d visits: %s", len(all), visits, firstOf(all, 3)),
		"each costs kernel memory until it is removed: rmdir them, and report it to the runtime")
}

func firstOf(all []string, n int) string {
	if len(all) > n {
		return strings.Join(all[:n], ", ") + ", …"
	}
	return strings.Join(all, ", ")
}

// sampling adds findings about missed samples and about readings of an unsettled node.
func (j *Judgement) sampling(target string) {
	missed, ticks, unsettled, read := 0, 0, 0, 0
	for _, v := range j.visits {
		if v.Target != target {
			continue
		}
		rs := []*record.Reading{v.Before, v.After}
		for _, p := range v.Phases {
			rs = append(rs, p.End)
			if s := p.Series; s != nil {
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
		j.add(foundMissed, finding.Warning, target, fmt.Sprintf("%d of %d ticks were missed (%.0f %%): the series have gaps", missed, ticks, 100*float64(missed)/float64(ticks)),
			"use a longer --interval, or a machine with a CPU to spare")
	}
	if unsettled > 0 {
		j.add(foundUnsettled, finding.Note, target, fmt.Sprintf("the node's memory was still changing at %d of %d readings", unsettled, read),
			"stop other programs, or raise --settle; the uncertainty of the residual shows the effect")
	}
}

// checked adds a finding with the phases in which a checked overhead is too small or not
// shown to be enough.
func (j *Judgement) checked(c *Check) {
	var where []string
	code, verb, advice := foundNotEnough, "is not enough", "use the recommended podFixed"
	if c.Answer == NotShown {
		code, verb = foundNotShown, "is not shown to be enough"
		advice = "hold phases for more than a second and ten samples, and repeat phases that were not measured: the other findings have the reasons. More sandboxes and a quiet node reduce the unexplained memory per sandbox"
	}
	for _, p := range c.Phases {
		at := p.where()
		var short []string
		switch {
		case p.Rounds == 0:
			where = append(where, at+" was not measured")
			continue
		case p.MemoryAnswer == NotEnough:
			short = append(short, "memory "+finding.Bytes(p.Memory))
		case p.Open != "":
			short = append(short, fmt.Sprintf("memory %s, and %s", finding.Bytes(p.Memory), p.Open))
		case p.MemoryAnswer == NotShown:
			short = append(short, "an unknown amount of memory, since the guest keeps memory from an earlier hold phase")
		}
		switch p.CPUAnswer {
		case NotEnough:
			short = append(short, fmt.Sprintf("cpu %.0fm", p.CPU))
		case NotShown:
			short = append(short, "an unknown amount of cpu")
		case Enough:
		}
		if short != nil {
			where = append(where, at+" needs "+strings.Join(short, " and "))
		}
	}
	if where == nil {
		where = []string{"no phase was measured"}
	}
	j.add(code, finding.Error, c.Target, fmt.Sprintf("an overhead of %dm and %s %s: %s", c.CPU, finding.Bytes(c.Memory), verb, strings.Join(where, "; ")),
		advice)
}
