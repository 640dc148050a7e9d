package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// Page returns the report. It begins with a summary: a row per target, a column per job.
// Each job follows, with the reasons of verdicts other than Device.
func (j *Judgement) Page(o page.Options) *page.Page {
	p := page.New(j.Plan.Title, Name)
	if j.Imported {
		p.Command = "tare import"
	}
	p.Head, p.Answer = head(j), j.answer()
	p.Add(inShort(j))
	if len(j.Tables) == 0 {
		p.Add(&page.Section{Title: "no job ran"})
	}
	p.Failed(j.Failed, fmt.Sprintf("failed %d/%d cells, round by round", j.Failed, j.Total))
	p.Add(page.Findings(j.Found, page.Sandboxes, o))
	p.AddDetails(volumes(j.Record.Places), sizes(j), devices(j.Ceilings, o), page.Configurations(j.Targets))
	for i, t := range j.Tables {
		p.AddDetails(jobTable(j, t, i == 0, o))
		if o.Verbose {
			p.AddDetails(jobExplained(j, t))
		}
	}
	p.AddDetails(page.Needed(j.Targets), whole(j, o))
	return p
}

// name returns the heading of a table: job, volume and cache. Volume and cache may be
// unknown in imported results.
func (t *Table) name() string {
	return strings.Join(slices.Concat(heading(t.Job, true), heading(t.Volume, true), heading(t.Cache, true)), ", ")
}

// ofDevice reports whether the cell's figures are those of the device.
func (c *Cell) ofDevice() bool { return c != nil && c.Rounds > 0 && c.Verdict == Device }

// says returns the status of a cell that every report shows with its figures.
func (c *Cell) says() string {
	switch {
	case c.Absent != "":
		return "absent"
	case c.Rounds == 0 && c.Failed == 0:
		return "no figures"
	case c.Rounds == 0:
		return "failed"
	}
	return c.Verdict.text()
}

func (v Verdict) text() string { return page.Heading(cmp.Or(string(v), "not judged")) }

// compared reports whether the cell has a ratio to another target.
func (c *Cell) compared() bool {
	return c != nil && c.Rounds > 0 && c.ratio().Known() && c.Target != c.table.Base
}

// times formats the ratio to the base. "~" means that no difference was shown. The
// parentheses mean that one of the two figures is not that of the device.
func (c *Cell) times() page.Cell {
	out := page.Value(c.ratio(), func(v float64) string { return page.Significant(v) + "×" })
	out.Head = page.Mark(c.primary().Versus) + out.Head
	switch {
	case !c.ofDevice() || !c.table.base.ofDevice():
		out.Head = "(" + out.Head + ")"
	case c.Different() && c.ratio().Value < 1:
		out.Style = term.Red
	case c.Different():
		out.Style = term.Green
	}
	return out
}

// clipped shortens foreign text to fit a line of a list.
func clipped(s string) string { return page.Short(term.Clean(s), page.LongestMessage) }

// meanings explains the verdicts other than Device, in the order of the report.
var meanings = []struct {
	verdict Verdict
	means   string
}{
	{GuestCache, "memory inside the sandbox answered"},
	{HostCache, "memory of the host, or of the device, answered"},
	{NotDirect, "O_DIRECT was requested and had no effect"},
	{Contradicted, "the tool's report contradicts its own process or the device"},
	{TooShort, "it ended before it could show anything"},
	{Throttled, "held back by a limit"},
	{Noisy, "too unsteady, or disturbed by others"},
	{NotContradicted, "reported by the tool only: there are no device readings, and nothing contradicts it"},
	{Unjudged, "there is nothing to compare it with"},
}
