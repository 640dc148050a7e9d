package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Overhead writes the report of an overhead run: a record and its judgement.
// It fails when w does, and on a format that there is none of.
func Overhead(w io.Writer, format Format, rec *record.Record, v *judge.Overhead, o Options) error {
	switch format {
	case JSON:
		return writeValue(w, overheadDocumentOf(rec, v))
	case CSV:
		return writeOverheadCSV(w, v)
	case Text, Markdown:
		return writePage(w, format, overheadPage(rec, v, o), o)
	}
	return format.Of("overhead")
}

// dot stands in a table of an overhead run where a target has nothing: most
// targets lack most roles, and a dash would look like a sign.
const dot = "·"

func overheadPage(rec *record.Record, v *judge.Overhead, o Options) *page {
	p := &page{command: "tare overhead", title: short(term.Clean(v.Plan.Title), longestTitle), head: overheadHead(rec, v, o)}
	p.add(inShort(v))
	for i := range v.Tables {
		t := &v.Tables[i]
		first := i == 0
		p.add(memoryByRole(v, t, first), cacheAndNode(t, first), cpuByRole(t, first), charges(t, first), engineSays(t, first))
		if o.Verbose || o.Explain {
			p.add(explained(t))
		}
	}
	if len(v.Tables) == 0 {
		p.add(&section{title: "no phase was begun"})
	}
	p.add(calibrations(v), oneMore(v))
	first := true
	for i := range v.Tables {
		if s := overTime(&v.Tables[i], first, o); s != nil {
			p.add(s)
			first = false
		}
	}
	p.add(classes(v))
	for i := range v.Check {
		p.add(checked(&v.Check[i], i == 0))
	}
	failed := section{title: fmt.Sprintf("failed %d/%d phases", v.Failed, v.Total)}
	if v.Failed > 0 {
		failed.style = term.Red
	}
	found := findings(v.Findings, sandboxesOf, o)
	p.add(&failed, needed(v.Targets), &found)
	return p
}

// add appends the sections that there are.
func (p *page) add(sections ...*section) {
	for _, s := range sections {
		if s != nil {
			p.sections = append(p.sections, *s)
		}
	}
}

// needed is what it took to make a target work here.
func needed(targets []record.Target) *section {
	items := notes(targets)
	if items == nil {
		return nil
	}
	return &section{title: "notes", style: term.Bold, lists: []list{{items: items}}}
}

// phaseName is how a phase at a count of sandboxes is called everywhere.
func phaseName(t *judge.OverheadTable) string {
	return heading(t.Phase) + ", " + sandboxesOf(t.Sandboxes)
}

func sandboxesOf(n int) string {
	if n == 1 {
		return "1 sandbox"
	}
	return fmt.Sprintf("%d sandboxes", n)
}

// roundsIn are the rounds with figures of a table's targets: "3 rounds",
// "2–3 rounds".
func roundsIn(t *judge.OverheadTable) string {
	var rounds []int
	for i := range t.Cells {
		rounds = append(rounds, t.Cells[i].Rounds)
	}
	if rounds == nil {
		return "no round"
	}
	least, most := slices.Min(rounds), slices.Max(rounds)
	if least == most {
		return roundsOf(most)
	}
	return fmt.Sprintf("%d–%s", least, roundsOf(most))
}

// targetCell names the target of a row, in red where a round of it failed.
func targetCell(c *judge.OverheadCell) cell {
	out := cell{head: heading(c.Target), label: heading(c.Target)}
	if c.Failed > 0 {
		out.style = term.Red
	}
	return out
}
