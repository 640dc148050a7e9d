package overhead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// chargedOutside tells in which phase most of a sandbox's memory was charged
// outside of the pod's group. What an overhead group is charged is the group's
// word; in a shared group only the processes tell.
func (j *judging) chargedOutside(target string) {
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
	j.found.Add(record.Finding{Code: foundOutside, Level: level, Target: target, Op: where.Phase, Lanes: where.Sandboxes,
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
func (j *judging) unlimited(target string) {
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
	j.found.Add(record.Finding{Code: foundUnlimited, Level: finding.Warning, Target: target, Op: at.Phase, Lanes: at.Sandboxes,
		Message: fmt.Sprintf("the overhead group %s has no limit and grew from %s idle to %s in phase %s", firstOf(paths, 1), finding.Bytes(float64(from)), finding.Bytes(float64(to)), at.Phase),
		Advice:  "a load inside can take the node's memory this way: set sandbox_cgroup_only=true with a RuntimeClass overhead, or bound the guest's memory"})
}

// unclaimed tells of processes that come with sandboxes and are in no row: helpers
// that a runtime left behind and that neither descent, cgroup nor arguments give away. On a
// node where many others come and go the interval is wide, and nothing is told.
func (j *judging) unclaimed(s *Scaling) {
	n, memory := &s.Slopes[ofOthersCount], &s.Slopes[ofOthers]
	if !n.Bounded || n.Lo <= unclaimedBound || n.Hi-n.Lo > 2*unclaimedBound {
		return
	}
	j.found.Add(record.Finding{Code: foundUnclaimed, Level: finding.Warning, Target: s.Target,
		Message: fmt.Sprintf("%.2g other processes come with each sandbox (%.2g…%.2g) and are in no row; all others' memory grows by %s with each", n.Value, n.Lo, n.Hi, finding.Bytes(memory.Value)),
		Advice:  "a runtime has left them behind (a double fork), or an engine starts them elsewhere: add them to what a sandbox costs; ps -e before and after a start shows which they are"})
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
func (j *judging) blind(target string) {
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
	j.found.Add(record.Finding{Code: foundBlind, Level: level, Target: target, Op: where.Phase, Lanes: where.Sandboxes,
		Message: fmt.Sprintf("%s reports %s where the sandboxes have %s (%.0f %%)", worst.Source, finding.Bytes(float64(worst.Reported)), finding.Bytes(float64(worst.Truth)), 100*float64(worst.Reported)/float64(worst.Truth)),
		Advice:  "do not size nodes or alerts by it; it shows the container's cgroup alone, not shims, VMMs and their memory"})
}
