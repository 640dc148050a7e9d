package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// medians is the main table: the median of every operation, its interval, and
// the comparison with the baseline.
func medians(l *judge.Lifecycle, t *judge.Table) section {
	s := section{title: fmt.Sprintf("%s, %s: latency", lanesOf(t.Lanes), roundsOf(t.Rounds)), style: term.Bold}
	if t.Lanes > 1 {
		s.title = fmt.Sprintf("%s, %s: makespan, from the release of all lanes to the last one's completion", lanesOf(t.Lanes), roundsOf(t.Rounds))
	}
	pivot := slices.IndexFunc(l.Targets, func(t record.Target) bool { return t.Name == l.Baseline })
	s.table = &spread{order: baselineFirst(len(l.Targets), pivot), pivot: pivot, build: func(of []int) *grid {
		return mediansOf(l, t, pivot, of)
	}}
	s.notes = mediansNotes(l, t)
	return s
}

func baselineFirst(n, baseline int) []int {
	var order []int
	if baseline >= 0 {
		order = append(order, baseline)
	}
	for i := range n {
		if i != baseline {
			order = append(order, i)
		}
	}
	return order
}

func mediansOf(l *judge.Lifecycle, t *judge.Table, baseline int, of []int) *grid {
	g := &grid{columns: []term.Column{{Title: "operation"}}}
	for _, i := range of {
		g.columns = append(g.columns, term.Column{Title: heading(l.Targets[i].Name), Right: true})
		if baseline >= 0 && i != baseline {
			g.columns = append(g.columns, term.Column{Title: "vs " + heading(l.Baseline), Right: true})
		}
	}
	for r := range t.Rows {
		row, first := &t.Rows[r], firstInstruction(l, &t.Rows[r])
		cells, below := []cell{plain(string(row.Op))}, []cell{{head: "  first instruction", label: string(row.Op) + ": first instruction"}}
		for _, i := range of {
			cells, below = append(cells, median(&row.Cells[i])), append(below, first[i])
			if baseline >= 0 && i != baseline {
				cells, below = append(cells, versus(&row.Cells[i])), append(below, cell{})
			}
		}
		g.rows = append(g.rows, cells)
		if slices.ContainsFunc(first, func(c cell) bool { return c.head != none }) {
			g.rows = append(g.rows, below)
		}
	}
	return g
}

// median shows failures before the figure, so that figures stay in line.
func median(c *judge.Cell) cell {
	out := plain(none)
	if c.Summary.N > 0 {
		out = cell{head: duration(c.Summary.Median), tail: halfWidth(c.Summary)}
	}
	if c.Failed > 0 {
		failed := fmt.Sprintf("%d/%d failed", c.Failed, c.Total)
		if c.Summary.N > 0 {
			failed += ", " + out.head
		}
		out.head, out.style = failed, term.Red
	}
	return out
}

func versus(c *judge.Cell) cell {
	if c.Versus == nil || c.Summary.N == 0 {
		return plain(none)
	}
	return change(c.Versus)
}

// firstInstruction is the time to the workload's first instruction on every
// target, for the operations that lead to it. A guest's own clock says nothing
// about the host's, so there it is the first output that the host saw.
func firstInstruction(l *judge.Lifecycle, row *judge.Row) []cell {
	out := make([]cell, len(row.Cells))
	for i := range row.Cells {
		out[i] = plain(none)
		if row.Op != subject.Start && row.Op != subject.Run {
			continue
		}
		stamp, mark := record.StampFirst, ""
		if l.Targets[i].Clock == guestClock {
			stamp, mark = record.StampSeen, "≤ "
		}
		for _, m := range row.Cells[i].Moments {
			if m.Stamp == stamp {
				out[i] = cell{head: mark + duration(m.Summary.Median), tail: halfWidth(m.Summary)}
			}
		}
	}
	return out
}

// guestClock is record.Target.Clock of a workload that has a clock of its own.
const guestClock = "guest"

func mediansNotes(l *judge.Lifecycle, t *judge.Table) []string {
	note := "median ± the larger half of its 95 % interval"
	if l.Baseline != "" {
		note += "; vs " + heading(l.Baseline) + ": difference of the medians, ~ where none was shown"
	}
	notes := []string{note}
	unknown, guest := false, false
	for _, row := range t.Rows {
		for i, c := range row.Cells {
			unknown = unknown || c.Summary.N > 0 && !c.Summary.Known
			guest = guest || l.Targets[i].Clock == guestClock && firstInstruction(l, &row)[i].head != none
			if c.Lost > 0 {
				notes = append(notes, fmt.Sprintf("%s %s: %s not released, because an earlier operation of theirs failed", heading(c.Target), row.Op, lanesOf(c.Lost)))
			}
		}
	}
	if mixed(l, t) {
		notes = append(notes, "run of "+strings.Join(withPods(l), ", ")+" begins with the pod, and create takes place in one; of the others a container stands alone")
	}
	if unknown {
		notes = append(notes, "±? too few rounds for an interval")
	}
	if guest {
		notes = append(notes, "≤ the workload has a clock of its own: this is its first output as the host saw it, after its first instruction")
	}
	return notes
}

// withPods are the targets whose containers live in pods.
func withPods(l *judge.Lifecycle) (names []string) {
	for i := range l.Targets {
		if judge.Absent(&l.Targets[i], subject.RunPod) == "" {
			names = append(names, heading(l.Targets[i].Name))
		}
	}
	return names
}

// mixed tells whether a container's operations stand beside those of one in a
// pod.
func mixed(l *judge.Lifecycle, t *judge.Table) bool {
	n := len(withPods(l))
	return n > 0 && n < len(l.Targets) && slices.ContainsFunc(t.Rows, func(r judge.Row) bool { return r.Op == subject.Create || r.Op == subject.Run })
}
