package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// medians is the main table: the median of every operation, its interval, and how many
// times the baseline's it is. Host and floor, which are no choice of runtime, are not
// compared here, see [limits].
func medians(j *Judgement, t *Table) *page.Section {
	s := &page.Section{Title: "one at a time, " + page.Amount(t.Rounds, "round"), Style: term.Bold}
	if t.Lanes > 1 {
		s.Title = fmt.Sprintf("%d at once, until the last is done, %s", t.Lanes, page.Amount(t.Rounds, "round"))
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

// mediansTable has host and floor first, then the baseline, and these in every part.
func mediansTable(j *Judgement, t *Table) *page.Table {
	table := page.Names("operation")
	order, compared := j.columns()
	for _, i := range order {
		column := page.Column{Title: page.Heading(j.Targets[i].Name), Right: true}
		if compared[i] {
			column.Group = i + 1
		}
		if table.Columns = append(table.Columns, column); j.Baseline == "" {
			table.Draw(page.Estimates)
		}
		if compared[i] {
			table.Columns = append(table.Columns, page.Column{Title: "÷ " + page.Heading(j.Baseline), Right: true, Group: i + 1, Beside: page.Changes})
		}
	}
	for r := range t.Rows {
		row := &t.Rows[r]
		cells := []page.Cell{page.Words(string(row.Op))}
		for _, i := range order {
			cells = append(cells, page.Median(&row.Cells[i].Time))
			if compared[i] {
				cells = append(cells, page.Quotient(&row.Cells[i].Time))
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
				if !compared[i] {
					continue
				}
				change := page.Cell{}
				if f := row.Cells[i].compared(); name == callReturned && f != &row.Cells[i].Time {
					change = page.Quotient(f)
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

// columns are the targets in the order of the main table, and which of them it compares.
func (j *Judgement) columns() (order []int, compared []bool) {
	rank := func(i int) int {
		switch t := &j.Targets[i]; {
		case t.Name == j.Baseline:
			return 1
		case limit(t):
			return 0
		}
		return 2
	}
	compared = make([]bool, len(j.Targets))
	for i := range j.Targets {
		order = append(order, i)
		compared[i] = j.Baseline != "" && rank(i) == 2
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	return order, compared
}

// limit tells whether a target is what no runtime can be faster than.
func limit(t *record.Target) bool { return t.Kind == kindHost || t.Kind == kindFloor }

// limits compares host and floor with the baseline; nil if there is neither, or nothing to
// compare with.
func limits(j *Judgement, t *Table) *page.Section {
	table := page.Names("operation")
	for _, row := range t.Rows {
		table.Row(page.Words(string(row.Op)))
	}
	for i := range j.Targets {
		if l := &j.Targets[i]; limit(l) && l.Name != j.Baseline && j.Baseline != "" {
			table.Add(page.Heading(l.Name)+" vs "+page.Heading(j.Baseline), page.Each(t.Rows, func(r *Row) page.Cell { return page.Change(r.Cells[i].compared()) }))
		}
	}
	if len(table.Columns) == 1 {
		return nil
	}
	return &page.Section{
		Title: page.Lanes(t.Lanes) + ": host and floor against " + page.Heading(j.Baseline), Style: term.Bold, Table: table,
		Notes: []string{page.Compared(j.Baseline, page.WithinRound, j.Plan.Comparing, t.Comparisons)},
	}
}

// guestClock is record.Target.Clock of a workload that has a clock of its own.
const guestClock = "guest"

func mediansNotes(j *Judgement, t *Table, shown *page.Table) []string {
	note := "median ± the larger half of its 95 % interval"
	if j.Baseline != "" {
		note += "; " + page.Divided(j.Baseline, j.Plan.Comparing)
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
