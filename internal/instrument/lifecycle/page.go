package lifecycle

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/record"
)

// Page is what a person reads of the run.
func (j *Judgement) Page(o page.Options) *page.Page {
	p := page.New(j.Plan.Title, Name)
	p.Answer = j.answer()
	rounds := 0
	for _, t := range j.Tables {
		rounds = max(rounds, t.Rounds)
	}
	p.Head = append(page.Head(j.Record, rounds), j.Plan.Cache.Told("operation")...)
	if j.Imported != nil {
		p.Head = append(page.Imported(j.Record, j.Imported, "the machines, their kernels and versions are not known"), page.Targets(j.Targets, j.Baseline))
	}
	p.Add(page.Configurations(j.Targets))
	said := map[string]bool{}
	for i := range j.Tables {
		s := medians(j, &j.Tables[i])
		s.Notes = slices.DeleteFunc(s.Notes, func(note string) bool { again := said[note]; said[note] = true; return again })
		p.Add(s)
	}
	if len(j.Tables) == 0 {
		p.Add(&page.Section{Title: "no measured round was begun"})
	}
	p.Failed(j.Failed, failed(j))
	p.Add(page.Findings(j.Found, page.Lanes, o))
	for i := range j.Tables {
		t := &j.Tables[i]
		p.AddDetails(limits(j, t))
		if t.Lanes > 1 && t.some(func(c *Cell) bool { return c.Lanes != nil }) {
			p.AddDetails(lanes(j, t))
		}
		if t.some(func(c *Cell) bool { return len(c.Roles) > 0 }) {
			p.AddDetails(roles(t))
		}
		if o.Verbose {
			p.AddDetails(details(t))
		}
	}
	for i := range j.Tables {
		if t := &j.Tables[i]; j.Imported == nil || t.some(func(c *Cell) bool { return c.Trimmed.Known() }) {
			s := isulad(j, t, j.subject())
			s.Detail = j.subject() == ""
			p.Add(s)
		}
	}
	p.AddDetails(timed(j))
	if j.Imported == nil {
		p.AddDetails(page.Run(j.Record, j.Plan.Seed, j.Baseline, o.Verbose))
	}
	return p
}

// subject is the target whose column of the iSulad form is compared with every
// other: the plan's, if this run has it.
func (j *Judgement) subject() string {
	if slices.ContainsFunc(j.Targets, func(t record.Target) bool { return t.Name == j.Plan.Subject }) {
		return j.Plan.Subject
	}
	return ""
}

// failed is the line that no report is without: a failure is not a time.
func failed(j *Judgement) string {
	if j.Unproven == 0 {
		return fmt.Sprintf("failed %d/%d operations, warm-up included", j.Failed, j.Total)
	}
	text := fmt.Sprintf("failed: of %d operations it cannot be known, since what they were imported from has no word for it", j.Unproven)
	if j.Total > 0 {
		text += fmt.Sprintf("; %d/%d of the others", j.Failed, j.Total)
	}
	return text
}

// some tells whether there is such a cell in the table.
func (t *Table) some(such func(*Cell) bool) bool {
	return slices.ContainsFunc(t.Rows, func(row Row) bool {
		return slices.ContainsFunc(row.Cells, func(c Cell) bool { return such(&c) })
	})
}
