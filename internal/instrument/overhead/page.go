// Package overhead measures what sandboxes add to a node, idle and under load. It shows
// memory and CPU time by role, and the cgroups that are charged. It recommends an
// overhead for the RuntimeClass.
//
// This package judges a record and makes figures and page from it. Package ledger does
// the accounting of each phase, and package run performs the plan.
package overhead

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/term"
)

// Page returns the report of the run.
func (j *Judgement) Page(o page.Options) *page.Page {
	p := page.New(j.Plan.Title, Name)
	p.Head, p.Answer = page.Head(j.Record, j.Plan.Rounds), j.answer()
	p.Add(inShort(j), page.Configurations(j.Targets))
	for i := range j.Check {
		p.Add(checked(&j.Check[i], i == 0))
	}
	p.Failed(j.Failed, fmt.Sprintf("failed %d/%d phases", j.Failed, j.Total))
	p.Add(page.Findings(j.Findings, page.Sandboxes, o))
	for i := range j.Tables {
		t, first := &j.Tables[i], i == 0
		p.AddDetails(memoryByRole(j, t, first), cacheAndNode(t, first), nodeFared(j, t, first), cpuByRole(j, t, first), charges(t, first), cgroups(j, t, first), engineSays(t, first))
		if o.Verbose {
			p.AddDetails(explained(t))
		}
	}
	if len(j.Tables) == 0 {
		p.Add(&page.Section{Title: "no phase was begun"})
	}
	p.AddDetails(page.Shifts(j.compared(), j.Plan.Comparing), ratiosPage(j), leftPage(j), groupsAroundPage(j), requestsPage(j), calibrations(j), asked(j), oneMore(j))
	first := true
	for i := range j.Tables {
		if s := courses(&j.Tables[i], first, o); s != nil {
			p.AddDetails(s)
			first = false
		}
	}
	p.AddDetails(classes(j), page.Needed(j.Targets), whole(j, o))
	return p
}

// roundsIn returns the number of rounds in a table: "3 rounds", "2–3 rounds".
func roundsIn(t *Table) string {
	byRounds := func(a, b Cell) int { return a.Rounds - b.Rounds }
	least, most := slices.MinFunc(t.Cells, byRounds).Rounds, slices.MaxFunc(t.Cells, byRounds).Rounds
	if least == most {
		return page.Amount(most, "round")
	}
	return fmt.Sprintf("%d–%s", least, page.Amount(most, "round"))
}

// targetCell returns the name of a row's target, in red if one of its rounds failed.
func targetCell(c *Cell) page.Cell {
	out := page.Cell{Head: page.Heading(c.Target), Label: page.Heading(c.Target)}
	if c.Failed > 0 {
		out.Style = term.Red
	}
	return out
}

// whole shows what ran where, with which settings.
func whole(v *Judgement, o page.Options) *page.Section {
	rec := v.Record
	s := page.Run(rec, v.Plan.Seed, "", o.Verbose)
	s.Lists[0].Items = append(s.Lists[0].Items, page.Item{
		Key: "phases", Text: page.Dotted(page.Amount(v.Plan.Rounds, "round"), headings(v.Plan.Phases, ", "), "sandboxes "+numbers(v.Plan.Sandboxes, ", "),
			"each held "+page.Duration(float64(v.Plan.Hold)), "sampled every "+page.Duration(float64(v.Plan.Interval)), terms.LimitsText(v.Plan.Limits), page.NodeMemory(rec)),
	})
	return s
}

// titled returns a section of a phase.
func titled(t *Table, what string) *page.Section {
	return &page.Section{Title: t.heading() + ": " + what, Style: term.Bold}
}
