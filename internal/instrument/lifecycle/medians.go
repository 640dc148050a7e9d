package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

const kindHost, kindFloor = "host", "floor"

// limit reports whether a target is a lower bound for every runtime.
func limit(t *record.Target) bool { return t.Kind == kindHost || t.Kind == kindFloor }

func (j *Judgement) target(name string) *record.Target {
	return &j.Record.Targets[slices.IndexFunc(j.Record.Targets, func(t record.Target) bool { return t.Name == name })]
}

func names(targets []record.Target) (all []string) {
	for i := range targets {
		all = append(all, targets[i].Name)
	}
	return all
}

// compares reports whether the main table compares a target with the baseline.
func (j *Judgement) compares(t *record.Target) bool {
	return j.Baseline != "" && t.Name != j.Baseline && !limit(t)
}

// medians returns the main table: the median of each operation, its interval, and the
// ratio to the baseline. Host and floor are not runtimes and are not compared here; see
// [Judgement.limits].
func (j *Judgement) medians(t *table) *page.Section {
	s, name := &page.Section{Title: "one at a time, " + page.Amount(t.rounds, "round"), Style: term.Bold, Table: j.mediansTable(t)}, "latency"
	if t.lanes > 1 {
		name, s.Title = "makespan", fmt.Sprintf("%d at once, until the last is done, %s", t.lanes, page.Amount(t.rounds, "round"))
	}
	var known []string
	for _, f := range t.times() {
		if f.Known() {
			known = append(known, f.Quantity)
		}
	}
	if known != nil && !slices.Contains(known, "latency") && !slices.Contains(known, "makespan") {
		s.Title = fmt.Sprintf("%s, %s: averages over several operations", page.Lanes(t.lanes), page.Amount(t.rounds, "round"))
	}
	s.Notes = j.mediansNotes(t, s.Table, known)
	c := &page.Chart{
		Name: fmt.Sprintf("%s-%d", name, t.lanes), Title: page.Lanes(t.lanes) + ": " + name, Kind: page.Intervals,
		Caption: "The " + name + " of each operation on each target" + page.WithRounds,
		X:       page.Axis{Title: "operation"}, Y: page.Axis{Title: name, Unit: figure.Nanoseconds},
	}
	rows := func(of func(figure.Set) *figure.Figure) figure.Rows {
		return t.Rows("op", names(j.Record.Targets), j.Baseline, of)
	}
	s.Draw(c.Rows(rows(func(cell figure.Set) *figure.Figure { return &cell[0] })), page.Against(fmt.Sprintf("compared-%d", t.lanes), rows(compared)))
	return s
}

// mediansTable orders the columns: host and floor, the baseline, then the others. Host,
// floor and baseline are repeated if the table is split.
func (j *Judgement) mediansTable(t *table) *page.Table {
	table, order := page.Names("operation"), slices.Clone(j.Record.Targets)
	rank := func(t *record.Target) int {
		switch {
		case t.Name == j.Baseline:
			return 1
		case limit(t):
			return 0
		}
		return 2
	}
	slices.SortStableFunc(order, func(a, b record.Target) int { return cmp.Compare(rank(&a), rank(&b)) })
	for i := range order {
		column := page.Column{Title: page.Heading(order[i].Name), Right: true}
		if j.compares(&order[i]) {
			column.Group = i + 1
			table.Columns = append(table.Columns, column)
			column.Title, column.Beside = "÷ "+page.Heading(j.Baseline), page.Changes
		} else if j.Baseline == "" {
			column.Beside = page.Estimates
		}
		table.Columns = append(table.Columns, column)
	}
	for _, row := range t.Parts("op") {
		line := func(name page.Cell, needed bool, show func(cell figure.Set) (value, change page.Cell)) {
			cells := []page.Cell{name}
			for i := range order {
				value, change := show(row.Part("target", order[i].Name))
				needed = needed || value.Head != page.None
				if cells = append(cells, value); j.compares(&order[i]) {
					cells = append(cells, change)
				}
			}
			if needed {
				table.Row(cells...)
			}
		}
		line(page.Words(row.Get("op")), true, func(cell figure.Set) (value, change page.Cell) { return page.Median(&cell[0]), page.Quotient(&cell[0]) })
		for _, name := range moments {
			line(page.Cell{Head: "  " + name, Label: row.Get("op") + ": " + name}, false, func(cell figure.Set) (value, change page.Cell) {
				if f := compared(cell); name == callReturned && f != &cell[0] {
					change = page.Quotient(f)
				}
				return j.moment(row, cell, name), change
			})
		}
	}
	return table
}

// moments are the intermediate times shown below an operation. For a pod in a cluster
// they are all reported times. Other operations show the call's return or the first
// instruction, unless the operation ends there, and readiness.
var moments = []string{string(record.StampScheduled), string(record.StampNodeSandbox), string(record.StampSandbox),
	string(record.StampNodeStarted), string(record.StampRunning), callReturned, firstInstruction, string(record.StampReady), string(record.StampExited)}

const (
	callReturned     = "call returned"
	firstInstruction = "first instruction"
)

// moment returns the time to an intermediate stamp on one target. The first instruction
// is shown only for start and run. A guest's clock differs from the host's, so for
// guests it is the first output seen by the host.
func (j *Judgement) moment(row, cell figure.Set, name string) page.Cell {
	op := cell.Get("op")
	if op == "" { // the target does not implement the operation
		return page.Words(page.None)
	}
	t, stamp, sign, shown := j.target(cell.Get("target")), name, "", false
	done := t.Operations[op].Done
	switch name {
	case firstInstruction:
		stamp, shown = string(record.StampFirst), (op == string(setting.Start) || op == string(setting.Run)) && !byFirst(&cell[0])
		if t.Clock == guestClock {
			stamp, sign = string(record.StampSeen), "≤ "
		}
	case callReturned:
		stamp, shown = string(record.StampReturned), slices.ContainsFunc(row, func(f figure.Figure) bool { return byFirst(&f) })
	case string(record.StampReady):
		shown = done != record.StampReady
	default:
		shown = done == record.StampReady || done == record.StampGone
	}
	f := cell.Of("time-to", "stamp", stamp)
	if !shown || !f.Known() {
		return page.Words(page.None)
	}
	c := page.Median(f)
	c.Head = sign + c.Head
	return c
}

// limits compares host and floor with the baseline. It returns nil without either, or
// without a baseline.
func (j *Judgement) limits(t *table) *page.Section {
	table, rows := page.Names("operation"), t.Parts("op")
	for _, row := range rows {
		table.Row(page.Words(row.Get("op")))
	}
	for i := range j.Record.Targets {
		if l := &j.Record.Targets[i]; limit(l) && l.Name != j.Baseline && j.Baseline != "" {
			table.Add(page.Heading(l.Name)+" vs "+page.Heading(j.Baseline), page.Each(rows, func(row *figure.Set) page.Cell { return page.Change(compared(row.Part("target", l.Name))) }))
		}
	}
	if len(table.Columns) == 1 {
		return nil
	}
	return &page.Section{
		Title: page.Lanes(t.lanes) + ": host and floor against " + page.Heading(j.Baseline), Style: term.Bold, Table: table,
		Notes: []string{page.Compared(j.Baseline, page.WithinRound, j.Plan.Comparing, len(pairs(t.Set, j.Baseline)))},
	}
}

func (j *Judgement) mediansNotes(t *table, shown *page.Table, known []string) []string {
	note := "median ± the larger half of its 95 % interval"
	if j.Baseline != "" {
		note += "; " + page.Divided(j.Baseline, j.Plan.Comparing)
	}
	note += shown.Dependent()
	notes := page.Filled(note, page.Opposed(pairs(t.Set, j.Baseline)))
	if slices.ContainsFunc(t.times(), byFirst) {
		notes = append(notes, "start and run end with the workload's first instruction where that is known, else with the call's return")
		if slices.ContainsFunc(t.Parts("op"), byReturn) {
			notes = append(notes, "if one of two targets lacks the first instruction, they are compared by the call's return, in its row")
		}
	}
	guest := false
	for _, cell := range t.Parts("op", "target") {
		name := cell.Get("target")
		guest = guest || j.target(name).Clock == guestClock && j.moment(cell, cell, firstInstruction).Head != page.None
		if lost := cell.Of("lanes-lost"); lost.Known() {
			notes = append(notes, fmt.Sprintf("%s %s: %s not released, because an earlier operation of theirs failed", page.Heading(name), cell.Get("op"), page.Lanes(int(lost.Value))))
		}
	}
	for _, quantity := range []string{"mean-latency", "time-per-operation"} {
		if slices.Contains(known, quantity) {
			notes = append(notes, quantity+", from several operations together: "+Quantities.Quantity(quantity).Is)
		}
	}
	// Containers in a pod and standalone containers share the table.
	var pods []string
	for i := range j.Record.Targets {
		if t := &j.Record.Targets[i]; Absent(t, setting.RunPod) == "" {
			pods = append(pods, page.Heading(t.Name))
		}
	}
	if pods != nil && len(pods) < len(j.Record.Targets) && slices.ContainsFunc(t.Set, func(f figure.Figure) bool {
		op := setting.Op(f.Labels.Get("op"))
		return op == setting.Create || op == setting.Run
	}) {
		notes = append(notes, "run of "+strings.Join(pods, ", ")+" starts with the pod, and create runs in a pod; other targets use a standalone container")
	}
	if slices.ContainsFunc(t.times(), func(f *figure.Figure) bool { return f.Known() && !f.Bounded }) {
		notes = append(notes, "±? too few rounds for an interval")
	}
	if guest {
		notes = append(notes, "≤ the workload has a clock of its own: this is its first output as the host saw it, after its first instruction")
	}
	return notes
}
