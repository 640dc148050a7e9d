package overhead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// chargedOutside adds a finding about sandbox memory that is charged outside the pod's
// group. For an overhead group the amount is its charge. For a shared group it is the PSS
// of the sandbox's processes.
func (j *Judgement) chargedOutside(c *Cell, put put) {
	idle := kindOf(c.Phase) == PhaseIdle
	sum := float64(outsideSum(&c.Ledger, idle))
	if c.Sandboxes == 0 || sum <= outsideBound {
		return
	}
	what, level, each := outside(&c.Ledger, idle), finding.Note, sum/float64(c.Sandboxes)
	if g := groupOf(&c.Ledger, record.ChargeOverhead); g.Usage > outsideBound {
		level = finding.Warning
		limit := "without a limit"
		if g.Limit > 0 {
			limit = "limit " + finding.Bytes(g.Limit)
		}
		what = append(what, fmt.Sprintf("the group %s is charged %s, %s", firstOf(g.Paths, 2), finding.Bytes(g.Usage), limit))
	}
	if each > growthBound {
		level = finding.Warning
	}
	if len(what) == 0 {
		what = []string{"many roles with less than 1 MiB each"}
	}
	put(each, foundOutside, level, fmt.Sprintf("%s per sandbox is charged outside the pod's cgroup: %s", finding.Bytes(each), strings.Join(what, "; ")),
		"the pod's limit does not apply to it, and the pod's statistics omit it; with Kata set sandbox_cgroup_only=true, otherwise reserve it for the system (kube-reserved)")
}

// outsideSum returns the memory charged outside the pod: for overhead groups the larger of
// charge and PSS, for shared groups PSS.
func outsideSum(l *ledger.Ledger, idle bool) int64 {
	over := groupOf(l, record.ChargeOverhead)
	return placed(l, record.ChargeShared, idle) + max(placed(l, record.ChargeOverhead, idle), over.Usage-over.Memory.Cache)
}

// placed returns the memory of the sandboxes' processes by charge. A runtime's exec exists only
// as long as its load, so it counts in idle phases only.
func placed(l *ledger.Ledger, charge record.Charge, idle bool) (bytes int64) {
	for _, p := range l.Places {
		if p.Charge == charge && (idle || p.Role != record.RoleRuntime) {
			bytes += p.Memory
		}
	}
	return bytes
}

// unlimited adds a finding about an overhead group that grows under load and has no limit.
// It uses the peak of the phase, because many loads have ended before the reading.
func (j *Judgement) unlimited(c *Cell, put put) {
	idle := j.at(c.Target, Step{string(PhaseIdle), c.Sandboxes})
	if idle == nil || kindOf(c.Phase) == PhaseIdle {
		return
	}
	now, then := groupOf(&c.Ledger, record.ChargeOverhead), groupOf(&idle.Ledger, record.ChargeOverhead)
	if now.Count == 0 || then.Count == 0 || now.Limit > 0 {
		return
	}
	most := max(now.Usage, int64(now.Over.Of("group-highest").Value))
	if s := c.Series.Of("over-time", "series", record.SeriesOverheadMemory).Series; s != nil {
		most = max(most, int64(slices.Max(s.Values))) // never empty
	}
	if grown := most - then.Usage; grown > growthBound && float64(grown) > growthShare*float64(then.Usage) {
		put(float64(grown), foundUnlimited, finding.Warning,
			fmt.Sprintf("the overhead group %s has no limit and grew from %s idle to %s in phase %s", firstOf(now.Paths, 1), finding.Bytes(then.Usage), finding.Bytes(most), c.Phase),
			"a load inside can exhaust the node's memory: set sandbox_cgroup_only=true with a RuntimeClass overhead, or bound the guest's memory")
	}
}

// unclaimed adds a finding about processes that appear with sandboxes and have no row,
// such as leftover helpers of a runtime. Each shares something with a sandbox. If many
// such processes come and go, the interval is wide and nothing is reported.
func (j *Judgement) unclaimed(s *Scaling) {
	n, memory := s.slope("others' processes"), s.slope("others' memory")
	if !n.Bounded || n.Lo <= unclaimedBound || n.Hi-n.Lo > 2*unclaimedBound {
		return
	}
	j.add(foundUnclaimed, finding.Warning, s.Target, fmt.Sprintf("%.2g other processes appear per sandbox (%.2g…%.2g), share its name, parent, cgroup or namespace, and are in no row; memory of all other processes grows by %s per sandbox", n.Value, n.Lo, n.Hi, finding.Bytes(memory.Value)),
		"a runtime left them behind (double fork), or an engine starts them elsewhere: add them to the cost of a sandbox; compare ps -e before and after a start to identify them")
}

// groupOf returns the row of a charge, or an empty row.
func groupOf(l *ledger.Ledger, charge record.Charge) ledger.GroupRow {
	if g := ledger.Find(l.Groups, func(g *ledger.GroupRow) bool { return g.Charge == charge }); g != nil {
		return *g
	}
	return ledger.GroupRow{}
}

// blind adds a finding about an engine that reports less than half of the memory.
func (j *Judgement) blind(c *Cell, put put) {
	for _, of := range c.Ledger.Engine.Parts("source") {
		reported, truth := of.Of("engine-memory", "of", "reported"), of.Of("engine-memory", "of", "observed").Value
		if !reported.Known() || truth <= 0 || reported.Value >= blindShare*truth {
			continue
		}
		level := finding.Note
		if truth-reported.Value > growthBound {
			level = finding.Warning
		}
		put(truth-reported.Value, foundBlind, level,
			fmt.Sprintf("%s reports %s, but the sandboxes use %s (%.0f %%)", of.Get("source"), finding.Bytes(reported.Value), finding.Bytes(truth), 100*reported.Value/truth),
			"do not size nodes or alerts by it: it covers only the container's cgroup, not shims and VMMs")
	}
}
