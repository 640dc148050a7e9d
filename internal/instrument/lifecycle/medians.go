package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// medians is the main table: the median of every operation, its interval, and
// the comparison with the baseline.
func medians(j *Judgement, t *Table) *page.Section {
	s := &page.Section{Title: fmt.Sprintf("%s, %s: latency", page.Lanes(t.Lanes), page.Amount(t.Rounds, "round")), Style: term.Bold}
	if t.Lanes > 1 {
		s.Title = fmt.Sprintf("%s, %s: makespan, from the release of all lanes to the last one's completion", page.Lanes(t.Lanes), page.Amount(t.Rounds, "round"))
	}
	if !t.some(func(c *Cell) bool {
		return c.Time.Known() && (c.Time.Quantity == "latency" || c.Time.Quantity == "makespan")
	}) &&
		t.some(func(c *Cell) bool { return c.Time.Known() }) {
		s.Title = fmt.Sprintf("%s, %s: what was told of several operations together", page.Lanes(t.Lanes), page.Amount(t.Rounds, "round"))
	}
	s.Table = mediansTable(j, t)
	s.Notes = mediansNotes(j, t, s.Table)
	s.Draw(mediansChart(t), against(j, t))
	return s
}

// mediansTable has the baseline first, and in every part.
func mediansTable(j *Judgement, t *Table) *page.Table {
	table := page.Names("operation")
	pivot := slices.IndexFunc(j.Targets, func(t record.Target) bool { return t.Name == j.Baseline })
	order := baselineFirst(len(j.Targets), pivot)
	for _, i := range order {
		if i == pivot {
			table.Columns = append(table.Columns, page.Column{Title: page.Heading(j.Targets[i].Name), Right: true})
			continue
		}
		table.Columns = append(table.Columns, page.Column{Title: page.Heading(j.Targets[i].Name), Right: true, Group: i + 1})
		if pivot < 0 {
			table.Draw(page.Estimates)
		} else {
			table.Columns = append(table.Columns, page.Column{Title: "vs " + page.Heading(j.Baseline), Right: true, Group: i + 1, Beside: page.Changes})
		}
	}
	for r := range t.Rows {
		row := &t.Rows[r]
		cells := []page.Cell{page.Words(string(row.Op))}
		for _, i := range order {
			cells = append(cells, page.Median(&row.Cells[i].Time))
			if pivot >= 0 && i != pivot {
				cells = append(cells, page.Change(&row.Cells[i].Time))
			}
		}
		table.Row(cells...)
		for _, name := range moments {
			of := on(j, row, name)
			if !slices.ContainsFunc(of, func(c page.Cell) bool { return c.Head != page.None }) {
				continue
			}
			below := []page.Cell{{Head: "  " + name, Label: string(row.Op) + ": " + name}}
			for _, i := range order {
				below = append(below, of[i])
				if pivot < 0 || i == pivot {
					continue
				}
				change := page.Cell{}
				if f := row.Cells[i].compared(); name == callReturned && f != &row.Cells[i].Time {
					change = page.Change(f)
				}
				below = append(below, change)
			}
			table.Row(below...)
		}
	}
	return table
}

// moments are those that are shown below an operation, on the way to its end: of a pod
// in a cluster all that were told, of others the call's return or the first instruction,
// whichever does not end the operation, and when the workload was ready.
var moments = []string{string(record.StampScheduled), string(record.StampNodeSandbox), string(record.StampSandbox),
	string(record.StampNodeStarted), string(record.StampRunning), callReturned, firstInstruction, string(record.StampReady), string(record.StampExited)}

const (
	callReturned     = "call returned"
	firstInstruction = "first instruction"
)

// on is the time to a moment on every target. That of the first instruction is shown of
// operations that lead to it; a guest's own clock says nothing about the host's, so there
// it is the first output that the host saw.
func on(j *Judgement, row *Row, name string) []page.Cell {
	out := make([]page.Cell, len(row.Cells))
	for i := range row.Cells {
		out[i] = page.Words(page.None)
		t, stamp, sign, shown := &j.Targets[i], name, "", false
		switch done := t.Operations[string(row.Op)].Done; name {
		case firstInstruction:
			stamp, shown = string(record.StampFirst), (row.Op == setting.Start || row.Op == setting.Run) && row.Cells[i].Done != record.StampFirst
			if t.Clock == guestClock {
				stamp, sign = string(record.StampSeen), "≤ "
			}
		case callReturned:
			stamp, shown = string(record.StampReturned), slices.ContainsFunc(row.Cells, func(c Cell) bool { return c.Done == record.StampFirst })
		case string(record.StampReady):
			shown = row.Cells[i].Ready.Asked > 0
		default:
			shown = done == record.StampReady || done == record.StampGone
		}
		for _, m := range row.Cells[i].Moments {
			if shown && m.Labels.Get("stamp") == stamp {
				out[i] = page.Median(&m)
				out[i].Head = sign + out[i].Head
			}
		}
	}
	return out
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

// guestClock is record.Target.Clock of a workload that has a clock of its own.
const guestClock = "guest"

func mediansNotes(j *Judgement, t *Table, shown *page.Table) []string {
	note := "median ± the larger half of its 95 % interval"
	if j.Baseline != "" {
		note += "; " + page.Compared(j.Baseline, page.WithinRound, j.Plan.Comparing, t.Comparisons)
	}
	note += shown.Dependent()
	notes := []string{note}
	if opposed := page.Opposed(pairs(t, j.Baseline)); opposed != "" {
		notes = append(notes, opposed)
	}
	if t.some(func(c *Cell) bool { return c.Done == record.StampFirst }) {
		notes = append(notes, "start and run end with the workload's first instruction where that is known, else with the call's return")
		if t.some(func(c *Cell) bool { return c.compared() != &c.Time }) {
			notes = append(notes, "targets of which one lacks the first instruction are compared by the call's return, in its row")
		}
	}
	unknown, guest := false, false
	for _, row := range t.Rows {
		for i, c := range row.Cells {
			unknown = unknown || c.Time.Estimate.Known() && !c.Time.Estimate.Bounded
			guest = guest || j.Targets[i].Clock == guestClock && on(j, &row, firstInstruction)[i].Head != page.None
			if c.Lost > 0 {
				notes = append(notes, fmt.Sprintf("%s %s: %s not released, because an earlier operation of theirs failed", page.Heading(c.Target), row.Op, page.Lanes(c.Lost)))
			}
		}
	}
	for _, told := range meansOfTold {
		if t.some(func(c *Cell) bool { return c.Time.Quantity == told[0] }) {
			notes = append(notes, told[0]+", told of several operations together: "+told[1])
		}
	}
	if mixed(j, t) {
		notes = append(notes, "run of "+strings.Join(withPods(j), ", ")+" begins with the pod, and create takes place in one; of the others a container stands alone")
	}
	if unknown {
		notes = append(notes, "±? too few rounds for an interval")
	}
	if guest {
		notes = append(notes, "≤ the workload has a clock of its own: this is its first output as the host saw it, after its first instruction")
	}
	return notes
}

// meansOfTold are the quantities of what a tool told of several operations.
var meansOfTold = [][2]string{
	{"mean-latency", "the mean of each output is a round; of several lanes, up to so many operations were under way at once"},
	{"time-per-operation", "the time of a whole run ÷ its operations, any number of which were under way at once; no latency"},
}

// withPods are the targets whose containers live in pods.
func withPods(j *Judgement) (names []string) {
	for i := range j.Targets {
		if Absent(&j.Targets[i], setting.RunPod) == "" {
			names = append(names, page.Heading(j.Targets[i].Name))
		}
	}
	return names
}

// mixed tells whether a container's operations stand beside those of one in a
// pod.
func mixed(j *Judgement, t *Table) bool {
	n := len(withPods(j))
	return n > 0 && n < len(j.Targets) && slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Op == setting.Create || r.Op == setting.Run })
}
