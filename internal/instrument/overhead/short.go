package overhead

import (
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// inShort is the first thing to be read: a row a target with what one idle sandbox
// takes, what one more costs, what the engine says, and what to put into a
// RuntimeClass. There is none without an idle phase, a slope and a RuntimeClass.
func inShort(v *Judgement) *page.Section {
	idle := fewestIdle(v.Tables)
	if idle == nil && len(v.Scaling) == 0 && len(v.Classes) == 0 {
		return nil
	}
	s := &page.Section{Title: "in short", Style: term.Bold}
	m := &page.Table{Columns: []page.Column{{Title: "target"}}}
	targets := make([]string, 0, len(v.Targets))
	for _, t := range v.Targets {
		targets = append(targets, t.Name)
		m.Row(page.Words(page.Heading(t.Name)))
	}
	least := false
	idleColumn := func(title string, show func(*Cell) page.Cell) {
		m.AddIf(title, page.Each(targets, func(name *string) page.Cell {
			if idle == nil {
				return page.Words(page.Dot)
			}
			i := slices.IndexFunc(idle.Cells, func(c Cell) bool { return c.Target == *name })
			if i < 0 || idle.Cells[i].Rounds == 0 {
				return page.Words(page.Dot)
			}
			return show(&idle.Cells[i])
		}))
	}
	per := func(v float64) float64 { return v / float64(max(1, idle.Sandboxes)) }
	bound := func(c *Cell, text string) string {
		if c.Ledger.Complete {
			return text
		}
		least = true
		return "≥ " + text
	}
	idleColumn("one idle MiB", func(c *Cell) page.Cell {
		return page.Cell{Head: bound(c, page.MiB(per(float64(c.Ledger.Sum)))), Style: term.Bold}
	})
	idleColumn("outside pod", func(c *Cell) page.Cell {
		return page.Words(bound(c, page.MiB(per(float64(outsidePod(&c.Ledger))))))
	})
	idleColumn("CPU m", func(c *Cell) page.Cell {
		cpus, some := cpuOf(&c.Ledger)
		text := page.Milli(per(cpus))
		if some {
			least, text = true, "≥ "+text
		}
		return page.Words(text)
	})
	m.AddIf("one more MiB", page.Each(targets, func(name *string) page.Cell {
		i := slices.IndexFunc(v.Scaling, func(s Scaling) bool { return s.Target == *name })
		if i < 0 {
			return page.Words(page.Dot)
		}
		l := &v.Scaling[i].Slopes[ofMemory]
		out := page.Cell{Head: page.MiB(l.Value), Figure: &l.Figure}
		if l.Bounded {
			out.Tail = "±" + page.MiB(math.Max(l.Hi-l.Value, l.Value-l.Lo))
		}
		return out
	}))
	idleColumn("engine says", func(c *Cell) page.Cell {
		if len(c.Ledger.Engine) == 0 || c.Ledger.Engine[0].Reported < 0 {
			return page.Words(page.Dot)
		}
		return page.Words(page.MiB(per(float64(c.Ledger.Engine[0].Reported))))
	})
	m.AddIf("podFixed", page.Each(targets, func(name *string) page.Cell {
		i := slices.IndexFunc(v.Classes, func(c RuntimeClass) bool { return c.Target == *name })
		if i < 0 {
			return page.Words(page.Dot)
		}
		c := &v.Classes[i]
		return page.Cell{Head: fmt.Sprintf("%dMi", (c.Memory+1<<20-1)>>20), Tail: fmt.Sprintf("%dm", c.CPU)}
	}))
	s.Table = m
	note := ""
	if idle != nil {
		note = "per sandbox, idle, with " + page.Sandboxes(idle.Sandboxes) + ": memory without page cache; of it charged outside the pod's cgroup, the engine's daemon with it; CPU; what the engine says first, MiB. "
	}
	s.Notes = []string{note + "One more: the slope over counts ± its 95 % interval; podFixed: recommended memory and CPU"}
	if least {
		s.Notes = append(s.Notes, "≥ something could not be read, and the figure is too small")
	}
	return s
}

// fewestIdle is the idle phase with the fewest sandboxes that has figures; nil:
// there is none.
func fewestIdle(tables []Table) *Table {
	var found *Table
	for i := range tables {
		t := &tables[i]
		some := slices.ContainsFunc(t.Cells, func(c Cell) bool { return c.Rounds > 0 })
		if t.Phase == string(PhaseIdle) && some && (found == nil || t.Sandboxes < found.Sandboxes) {
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
