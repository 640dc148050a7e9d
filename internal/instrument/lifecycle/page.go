package lifecycle

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Page is what a person reads of the run.
func (j *Judgement) Page(o page.Options) *page.Page {
	p := page.New(j.Plan.Title, Name)
	p.Head = []string{page.Ran(j.Record, j.Plan.Seed), page.Targets(j.Targets, j.Baseline)}
	if o.Verbose {
		p.Head = append(p.Head, page.Surroundings(&j.Record.Header))
	}
	for i := range j.Tables {
		t := &j.Tables[i]
		p.Add(medians(j, t))
		if t.Lanes > 1 {
			p.Add(lanes(t))
		}
		if hasRoles(t) {
			p.Add(roles(t))
		}
		if o.Verbose {
			p.Add(details(t))
		}
	}
	if len(j.Tables) == 0 {
		p.Add(&page.Section{Title: "no measured round was begun"})
	}
	p.Add(failed(j))
	for i := range j.Tables {
		p.Add(isulad(j, &j.Tables[i], j.subject(o.Subject)))
	}
	p.Add(timed(j), page.Findings(j.Found, page.Lanes, o))
	return p
}

// subject is the target whose column of the iSulad form is compared with every
// other: the wanted one, or else the plan's, where this run has it.
func (j *Judgement) subject(wanted string) string {
	for _, name := range []string{wanted, j.Plan.Subject} {
		if slices.ContainsFunc(j.Targets, func(t record.Target) bool { return t.Name == name }) {
			return name
		}
	}
	return ""
}

// failed is the line that no report is without: a failure is not a time.
func failed(j *Judgement) *page.Section {
	s := &page.Section{Title: fmt.Sprintf("failed %d/%d operations, warm-up included", j.Failed, j.Total)}
	if j.Failed > 0 {
		s.Style = term.Red
	}
	return s
}
