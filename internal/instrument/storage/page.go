package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// Page is what a person reads of the run: a row a target and a column a job in
// short, and then each job with why a figure is none of the device's.
func (j *Judgement) Page(o page.Options) *page.Page {
	p := page.New(j.Plan.Title, Name)
	if j.Imported {
		p.Command = "tare import"
	}
	p.Head, p.Answer = head(j), j.answer()
	p.Add(inShort(j))
	if len(j.Tables) == 0 {
		p.Add(&page.Section{Title: "no job was run"})
	}
	p.Failed(j.Failed, fmt.Sprintf("failed %d/%d cells, round by round", j.Failed, j.Total))
	p.Add(page.Findings(j.Found, page.Sandboxes, o))
	p.AddDetails(volumes(j.Places), sizes(j), devices(j.Ceilings, o), page.Configurations(j.Targets))
	for i, t := range j.Tables {
		p.AddDetails(jobTable(j, t, i == 0, o))
		if o.Verbose {
			p.AddDetails(jobExplained(j, t))
		}
	}
	p.AddDetails(page.Needed(j.Targets), whole(j, o))
	return p
}

// name is how a table is called everywhere: its job, volume and cache. The last
// two are not always known of what was imported.
func (t *Table) name() string {
	return strings.Join(slices.Concat(heading(t.Job, true), heading(t.Volume, true), heading(t.Cache, true)), ", ")
}

// ofDevice tells whether a cell's figures are to be believed of the device.
func (c *Cell) ofDevice() bool { return c != nil && c.Rounds > 0 && c.Verdict == Device }

// says is what stands before or beside a cell's figures in every form.
func (c *Cell) says() string {
	switch {
	case c.Absent != "":
		return "absent"
	case c.Rounds == 0 && c.Failed == 0:
		return "no figures"
	case c.Rounds == 0:
		return "failed"
	case c.Verdict == Unjudged:
		return "not judged"
	}
	return page.Heading(string(c.Verdict))
}

// compared tells whether there is a ratio to another target.
func (c *Cell) compared() bool {
	return c != nil && c.Rounds > 0 && c.Ratio.Known() && c.Target != c.table.Base
}

// times is how many times the base's figure a cell's is: "~" where it was not
// shown to differ, in parentheses where one of the two is none of the device's.
func (c *Cell) times() page.Cell {
	out := page.Value(&c.Ratio, func(v float64) string { return page.Significant(v) + "×" })
	out.Head = page.Mark(c.primary().Versus) + out.Head
	switch {
	case !c.ofDevice() || !c.table.base.ofDevice():
		out.Head = "(" + out.Head + ")"
	case c.Different() && c.Ratio.Value < 1:
		out.Style = term.Red
	case c.Different():
		out.Style = term.Green
	}
	return out
}

// clipped is a text of others as a line of a list has it.
func clipped(s string) string { return page.Short(term.Clean(s), page.LongestMessage) }

// meanings of the verdicts that are not the device's, in the order in which they
// are told.
var meanings = []struct {
	verdict Verdict
	means   string
}{
	{GuestCache, "memory inside the sandbox answered"},
	{HostCache, "memory of the host, or of the device, answered"},
	{NotDirect, "O_DIRECT was asked for and had no effect"},
	{Contradicted, "what the tool says contradicts its own process or the device"},
	{TooShort, "over before it could show anything"},
	{Throttled, "held back by a limit"},
	{Noisy, "too unsteady, or disturbed by others"},
	{NotContradicted, "a tool's word; nothing was seen at the device, and nothing speaks against it"},
	{Unjudged, "there is nothing to hold it against"},
}
