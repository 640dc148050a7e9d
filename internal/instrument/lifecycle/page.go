package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Page returns the page of the run.
func (j *Judgement) Page(o page.Options) *page.Page {
	p, imported, tables := page.New(j.Plan.Title, Name), j.imported(), j.tables()
	p.Answer = j.answer()
	rounds := 0
	for _, t := range tables {
		rounds = max(rounds, t.rounds)
	}
	p.Head = append(page.Head(j.Record, rounds), j.Plan.Cache.Told("operation")...)
	if imported != nil {
		p.Head = append(page.Imported(j.Record, imported, "the machines, their kernels and versions are unknown"), page.Targets(j.Record.Targets, j.Baseline))
	}
	p.Add(page.Configurations(j.Record.Targets))
	said := map[string]bool{}
	for i := range tables {
		s := j.medians(&tables[i])
		s.Notes = slices.DeleteFunc(s.Notes, func(note string) bool { again := said[note]; said[note] = true; return again })
		p.Add(s)
	}
	if len(tables) == 0 {
		p.Add(&page.Section{Title: "no measured round was started"})
	}
	p.Failed(j.Failed, j.failed())
	p.Add(page.Findings(j.Found, page.Lanes, o))
	for i := range tables {
		t := &tables[i]
		p.AddDetails(j.limits(t))
		if t.lanes > 1 {
			p.AddDetails(j.lanes(t))
		}
		p.AddDetails(j.roles(t))
		if o.Verbose {
			p.AddDetails(j.details(t))
		}
	}
	for i := range tables {
		if t := &tables[i]; imported == nil || slices.ContainsFunc(t.Set, func(f figure.Figure) bool { return f.Quantity == "trimmed-mean" && f.Known() }) {
			p.Add(j.isulad(t))
		}
	}
	p.AddDetails(j.timed())
	if imported == nil {
		p.AddDetails(page.Run(j.Record, j.Plan.Seed, j.Baseline, o.Verbose))
	}
	return p
}

// failed returns the line with the number of failures. Every report has it, because a
// failed operation has no time.
func (j *Judgement) failed() string {
	if j.Unproven == 0 {
		return fmt.Sprintf("failed %d/%d operations, warm-up included", j.Failed, j.Total)
	}
	text := fmt.Sprintf("failed: unknown for %d operations, because the imported format does not record failures", j.Unproven)
	if j.Total > 0 {
		text += fmt.Sprintf("; %d/%d of the others", j.Failed, j.Total)
	}
	return text
}

// laneColumns are the columns of the table of lanes.
var laneColumns = []page.Quantity{
	{Of: "lane-latency", Titles: laneQuantiles, Key: "quantile", Values: laneQuantiles, Show: page.Duration},
	{Of: "release-skew", Titles: []string{"skew"}, Show: page.Duration},
	{Of: "parallelism", Titles: []string{"parallel"}, Show: func(v float64) string { return fmt.Sprintf("%.1f", v) }},
	{Of: "own-cpu-share", Titles: []string{"own CPU"}, Show: func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }},
}

// lanes returns the table of the lanes' own latencies.
func (j *Judgement) lanes(t *table) *page.Section {
	s := page.Grid(&Quantities, t.Set, []string{"op", "target"}, laneColumns)
	if s != nil {
		s.Title = page.Lanes(t.lanes) + ": latency of each, from its own start"
		s.Draw(j.lanesCharts(t)...)
	}
	return s
}

// roleColumns are the columns of the engine's resource usage.
var roleColumns = []page.Quantity{
	{Of: "role-processes", Titles: []string{"processes"}, Cell: processes},
	{Of: "role-cpu", Titles: []string{"CPU per operation"}, Show: page.Duration},
	{Of: "role-memory", Titles: []string{"memory before", "peak", "after"}, Key: "when", Values: []string{"before", "peak", "after"}, Show: page.Memory},
	{Of: "role-memory-growth", Titles: []string{"growth per container"}, Show: page.Growth},
	{Of: "role-memory-each", Titles: []string{"each process"}, Show: page.Memory},
}

// roles returns the table of CPU time and memory of the engine's own processes.
func (j *Judgement) roles(t *table) *page.Section {
	s := page.Grid(&Quantities, t.Set, []string{"op", "target", "role"}, roleColumns)
	if s == nil {
		return nil
	}
	s.Title = page.Lanes(t.lanes) + ": what the engine itself used"
	s.Notes = append([]string{"medians over the rounds without failed lanes or unreadable processes"}, s.Notes...)
	for _, part := range t.Parts("op", "target", "role") {
		target, op, role := part.Get("target"), part.Get("op"), part.Get("role")
		if used, unread := usage(measured(j.Record, t.lanes, target, op), record.Role(role)); unread > 0 {
			s.Notes = append(s.Notes, fmt.Sprintf("%s %s, %s: processes that could not be read %d; of what it used %s count", page.Heading(target), op, page.Heading(role), unread, page.Amount(len(used), "round")))
		}
	}
	return s
}

// processes formats the number of processes before and after a batch.
func processes(role figure.Set) page.Cell {
	before, after := role.Of("role-processes", "when", "before"), role.Of("role-processes", "when", "after")
	c := page.Value(after, page.Count)
	if before.Value != after.Value {
		c.Head = page.Count(before.Value) + " → " + c.Head
	}
	return c
}

// details lists every stamp, the resource usage of the operations' commands, and the
// reason of each verdict.
func (j *Judgement) details(t *table) *page.Section {
	s := &page.Section{Title: page.Lanes(t.lanes) + ": every stamp, the commands' own resources, and the verdicts", Style: term.Bold}
	for _, row := range t.Parts("op") {
		list := page.List{Heading: row.Get("op")}
		for _, cell := range row.Parts("target") {
			list.Items = append(list.Items, j.detail(t, cell)...)
		}
		s.Lists = append(s.Lists, list)
		s.Notes = []string{"each value is a separate median: CPU need not be the sum of user and system"}
	}
	return s
}

func (j *Judgement) detail(t *table, cell figure.Set) []page.Item {
	parts := []string{fmt.Sprintf("n=%d", cell[0].N)}
	for i := range cell {
		stamp := cell[i].Labels.Get("stamp")
		if stamp == "" {
			continue
		}
		part := stamp + " " + page.Duration(cell[i].Value)
		if stamp == string(record.StampReady) {
			for i, f := range []*figure.Figure{cell.Of("ready-resolution", "quantile", "p50"), cell.Of("ready-resolution", "quantile", "max"), cell.Of("first-request")} {
				if f.Known() {
					part += []string{", known to ", ", at worst ", ", first request "}[i] + page.Duration(f.Value)
				}
			}
			if atMost, asked := polled(measured(j.Record, t.lanes, cell.Get("target"), cell.Get("op"))); atMost > 0 {
				part += fmt.Sprintf(", at most in %d of %d: ready when first asked", atMost, asked)
			}
		}
		parts = append(parts, part)
	}
	if cpu := cell.Of("command-cpu").Value; cpu > 0 {
		parts = append(parts, fmt.Sprintf("CPU %s (user %s, system %s)", page.Duration(cpu), page.Duration(cell.Of("user-cpu").Value), page.Duration(cell.Of("system-cpu").Value)))
	}
	if rss := cell.Of("max-rss").Value; rss > 0 {
		parts = append(parts, "max RSS "+page.Size(rss))
	}
	items := []page.Item{{Key: page.Heading(cell.Get("target")), Text: strings.Join(parts, " · ")}}
	if f := compared(cell); f.Versus != nil {
		items = append(items, page.Item{Text: strings.TrimSpace("vs "+f.Versus.Baseline+" "+f.Labels.Get("stamp")) + ": " + f.Versus.Why})
	}
	return items
}

// timed lists what was timed: each operation's command on each target, and its end.
// Operations with equal entries are merged.
func (j *Judgement) timed() *page.Section {
	s := &page.Section{Title: "what was timed", Style: term.Bold, Part: page.Method}
	for _, op := range j.Plan.Ops {
		if len(j.All) > 0 && !slices.ContainsFunc(j.Record.Targets, func(t record.Target) bool { return Absent(&t, op) == "" }) {
			continue // only requested by default
		}
		items := page.Definitions(j.Record.Targets, string(op))
		if len(items) == 0 {
			continue
		}
		if last := len(s.Lists) - 1; last >= 0 && slices.Equal(s.Lists[last].Items, items) {
			s.Lists[last].Heading += ", " + string(op)
			continue
		}
		s.Lists = append(s.Lists, page.List{Heading: string(op), Items: items})
	}
	if len(s.Lists) == 0 {
		s.Title += ": nothing"
	}
	if notes := page.TargetNotes(j.Record.Targets); notes != nil {
		s.Lists = append(s.Lists, page.List{Heading: "notes", Items: notes})
	}
	return s
}
