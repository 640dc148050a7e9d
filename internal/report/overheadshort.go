package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// inShort is the first thing to be read: a row a target with what one idle sandbox
// takes, what one more costs, what the engine says, and what to put into a
// RuntimeClass. There is none without an idle phase, a slope and a RuntimeClass.
func inShort(v *judge.Overhead) *section {
	idle := fewestIdle(v.Tables)
	if idle == nil && len(v.Scaling) == 0 && len(v.Classes) == 0 {
		return nil
	}
	s := &section{title: "in short", style: term.Bold}
	m := &matrix{lead: []term.Column{{Title: "target"}}}
	targets := make([]string, 0, len(v.Targets))
	for _, t := range v.Targets {
		targets = append(targets, t.Name)
		m.rows = append(m.rows, matrixRow{lead: []cell{plain(heading(t.Name))}})
	}
	least := false
	idleColumn := func(title string, show func(*judge.OverheadCell) cell) {
		m.onlyIf(title, each(targets, func(name *string) cell {
			if idle == nil {
				return plain(dot)
			}
			i := slices.IndexFunc(idle.Cells, func(c judge.OverheadCell) bool { return c.Target == *name })
			if i < 0 || idle.Cells[i].Rounds == 0 {
				return plain(dot)
			}
			return show(&idle.Cells[i])
		}))
	}
	per := func(v float64) float64 { return v / float64(max(1, idle.Sandboxes)) }
	bound := func(c *judge.OverheadCell, text string) string {
		if c.Ledger.Complete {
			return text
		}
		least = true
		return "≥ " + text
	}
	idleColumn("one idle MiB", func(c *judge.OverheadCell) cell {
		return cell{head: bound(c, mib(per(float64(c.Ledger.Sum)))), style: term.Bold}
	})
	idleColumn("outside pod", func(c *judge.OverheadCell) cell {
		return plain(bound(c, mib(per(float64(outsidePod(&c.Ledger))))))
	})
	idleColumn("CPU m", func(c *judge.OverheadCell) cell {
		cpus, some := cpuOf(&c.Ledger)
		text := milli(per(cpus))
		if some {
			least, text = true, "≥ "+text
		}
		return plain(text)
	})
	m.onlyIf("one more MiB", each(targets, func(name *string) cell {
		i := slices.IndexFunc(v.Scaling, func(s judge.Scaling) bool { return s.Target == *name })
		if i < 0 {
			return plain(dot)
		}
		l := &v.Scaling[i].Memory
		out := plain(mib(l.Value))
		if l.Known {
			out.tail = "±" + mib(math.Max(l.Hi-l.Value, l.Value-l.Lo))
		}
		return out
	}))
	idleColumn("engine says", func(c *judge.OverheadCell) cell {
		if len(c.Ledger.Engine) == 0 || c.Ledger.Engine[0].Reported < 0 {
			return plain(dot)
		}
		return plain(mib(per(float64(c.Ledger.Engine[0].Reported))))
	})
	m.onlyIf("podFixed", each(targets, func(name *string) cell {
		i := slices.IndexFunc(v.Classes, func(c judge.RuntimeClass) bool { return c.Target == *name })
		if i < 0 {
			return plain(dot)
		}
		c := &v.Classes[i]
		return cell{head: fmt.Sprintf("%dMi", (c.Memory+1<<20-1)>>20), tail: fmt.Sprintf("%dm", c.CPU)}
	}))
	s.table = m.spread()
	note := ""
	if idle != nil {
		note = "per sandbox, idle, with " + sandboxesOf(idle.Sandboxes) + ": memory without page cache; of it charged outside the pod's cgroup, the engine's daemon with it; CPU; what the engine says first, MiB. "
	}
	s.notes = []string{note + "One more: the slope over counts ± its 95 % interval; podFixed: recommended memory and CPU"}
	if least {
		s.notes = append(s.notes, "≥ something could not be read, and the figure is too small")
	}
	return s
}

// idlePhase is how the phase without a load is called, see plan.Phase.
const idlePhase = "idle"

// fewestIdle is the idle phase with the fewest sandboxes that has figures; nil:
// there is none.
func fewestIdle(tables []judge.OverheadTable) *judge.OverheadTable {
	var found *judge.OverheadTable
	for i := range tables {
		t := &tables[i]
		some := slices.ContainsFunc(t.Cells, func(c judge.OverheadCell) bool { return c.Rounds > 0 })
		if t.Phase == idlePhase && some && (found == nil || t.Sandboxes < found.Sandboxes) {
			found = t
		}
	}
	return found
}

// outsidePod is what of a target's sum no pod's group is charged for: neither what
// processes there have, nor those groups' kernel memory.
func outsidePod(l *ledger.Ledger) int64 {
	out := l.Sum
	for _, p := range l.Places {
		if p.Charge == record.ChargePod {
			out -= p.Memory
		}
	}
	for i := range l.Groups {
		if g := &l.Groups[i]; g.Charge == record.ChargePod {
			out -= g.Memory.Kernel
		}
	}
	return max(0, out)
}

// cpuOf is what all roles but others use, in CPUs, and whether something of it is
// not known.
func cpuOf(l *ledger.Ledger) (cpus float64, least bool) {
	for _, row := range l.Rows {
		switch {
		case row.Role == record.RoleOthers:
		case row.CPUKnown:
			cpus += row.CPU
		case row.Processes > 0:
			least = true
		}
	}
	return cpus, least
}
