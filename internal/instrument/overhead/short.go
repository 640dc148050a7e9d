package overhead

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// shortly holds the results of a target for one line of the section.
type shortly struct {
	why   string // reason of a failure
	idle  *Cell
	slope *figure.Figure
	class *RuntimeClass
}

// inShort returns the summary, one row per target. It shows the usage of an idle sandbox,
// the cost of one more, the engine's report and the recommended overhead. It returns nil
// if idle phase, slope and RuntimeClass are all missing.
func inShort(v *Judgement) *page.Section {
	idle := v.fewestIdle()
	if idle == nil && len(v.Scaling) == 0 && len(v.Classes) == 0 {
		return nil
	}
	m := page.Names("target")
	rows := make([]shortly, len(v.Targets))
	for i, t := range v.Targets {
		m.Row(page.Words(page.Heading(t.Name)))
		if idle != nil {
			rows[i].idle = v.at(t.Name, idle.Step)
		}
		rows[i].why, rows[i].class = v.why(t.Name, idle), v.class(t.Name)
		if s := ledger.Find(v.Scaling, func(s *Scaling) bool { return s.Target == t.Name }); s != nil {
			rows[i].slope = s.slope("memory")
		}
	}
	least, open := false, false
	column := func(title string, there func(*shortly) bool, show func(*shortly) page.Cell) {
		m.AddIf(title, page.Each(rows, func(r *shortly) page.Cell {
			if there(r) {
				return show(r)
			}
			return page.Words(map[bool]string{true: page.Dot}[r.why == ""])
		}))
	}
	isIdle := func(r *shortly) bool { return r.idle != nil }
	per := func(v float64) float64 { return v / float64(max(1, idle.Sandboxes)) }
	bound := func(whole bool, text string) string {
		if whole {
			return text
		}
		least = true
		return "≥ " + text
	}
	column("one idle MiB", isIdle, func(r *shortly) page.Cell {
		l := &r.idle.Ledger
		return page.Cell{Head: bound(l.Complete, page.MiB(per(float64(l.Sum)))), Style: term.Bold}
	})
	column("outside pod", isIdle, func(r *shortly) page.Cell {
		l := &r.idle.Ledger
		return page.Words(bound(l.Complete, page.MiB(per(float64(outsidePod(l))))))
	})
	column("CPU m", isIdle, func(r *shortly) page.Cell {
		cpus, some := r.idle.Ledger.CPU()
		return page.Words(bound(!some, page.Milli(per(cpus))))
	})
	column("MiB per extra", func(r *shortly) bool { return r.slope != nil }, func(r *shortly) page.Cell {
		out := page.Value(r.slope, page.MiB[float64])
		if r.slope.Bounded {
			out.Tail = "±" + page.HalfOf(r.slope.Estimate, page.MiB[float64])
		}
		return out
	})
	reported := func(r *shortly) *figure.Figure { // by the first source
		return r.idle.Ledger.Engine.Parts("source")[0].Of("engine-memory", "of", "reported")
	}
	says := func(r *shortly) bool { return r.idle != nil && len(r.idle.Ledger.Engine) > 0 && reported(r).Known() }
	column("engine-reported", says, func(r *shortly) page.Cell { return page.Words(page.MiB(per(reported(r).Value))) })
	column("podFixed", func(r *shortly) bool { return r.class != nil }, func(r *shortly) page.Cell {
		memory := fmt.Sprintf("%dMi", (r.class.Memory+1<<20-1)>>20)
		if r.class.Open {
			memory, open = memory+"?", true
		}
		return page.Cell{Head: memory, Tail: fmt.Sprintf("%dm", r.class.CPU)}
	})
	if slices.ContainsFunc(rows, func(r shortly) bool { return r.why != "" }) {
		m.AddText("failed", page.Each(rows, func(r *shortly) page.Cell { return page.Cell{Head: r.why, Style: term.Red} }))
	}
	note := ""
	if idle != nil {
		note = "per sandbox, idle, with " + page.Sandboxes(idle.Sandboxes) + ": memory without page cache; the part charged outside the pod's cgroup, including the engine's daemon; CPU; the engine's first figure, MiB. "
	}
	notes := lines{note + "Per extra sandbox: the slope over counts ± its 95 % interval; podFixed: recommended memory and CPU"}
	notes.addIf(least, "≥ part could not be read, so the figure is too small")
	notes.addIf(open, "? not shown to be enough: unexplained memory exceeds podFixed's margin")
	return &page.Section{Title: "in short", Style: term.Bold, Table: m, Notes: notes}
}

// fewestIdle returns the idle phase with figures and the fewest sandboxes, or nil.
func (j *Judgement) fewestIdle() (found *Table) {
	for t, c := range j.cells() {
		if c.Rounds > 0 && t.Phase == string(PhaseIdle) && (found == nil || t.Sandboxes < found.Sandboxes) {
			found = t
		}
	}
	return found
}

// outsidePod returns the part of a target's sum that is not charged to pod groups. It
// subtracts the memory of processes in pod groups, and the kernel memory of these groups.
func outsidePod(l *ledger.Ledger) int64 {
	return max(0, l.Sum-placed(l, record.ChargePod, true)-groupOf(l, record.ChargePod).Memory.Kernel)
}
