// Package document makes a single document of the records of a plan. It starts with answers and
// findings, continues with the pages of the instruments, and ends with the method, the command to
// repeat it, and the environment. Like a page, it is made from records only.
package document

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Of returns the pages of a document: a cover, one page per record, and the method. The document ends
// with the section again.
func Of(all []instrument.Judged, l instrument.List, again *page.Section, o page.Options) ([]*page.Page, error) {
	measures := make([]measure, len(all))
	for i, one := range Ordered(all) {
		m, err := newMeasure(i, one, l, o)
		if err != nil {
			return nil, err
		}
		measures[i] = m
	}
	front, back := cover(measures), &page.Page{Title: "How it was measured"}
	for i := range measures {
		for _, sentence := range measures[i].page.Answer {
			front.Answer = append(front.Answer, measures[i].name+": "+sentence)
		}
		measures[i].page.Answer = nil // already on the cover
	}
	front.Add(contents(measures), mistrust(measures))
	for i := range measures {
		back.Add(measures[i].asked)
		back.Sections = append(back.Sections, measures[i].method...)
	}
	back.Add(again, environment(measures))
	pages := []*page.Page{front}
	for i := range measures {
		pages = append(pages, measures[i].page)
	}
	return append(pages, back), nil
}

// Ordered returns the records in the order of their plan.
func Ordered(all []instrument.Judged) []instrument.Judged {
	all = slices.Clone(all)
	if _, one := planOf(all); one {
		slices.SortStableFunc(all, func(a, b instrument.Judged) int { return a.Record.Header.Of.Measure - b.Record.Header.Of.Measure })
	}
	return all
}

// planOf returns the plan of the records, if all belong to the same one.
func planOf(all []instrument.Judged) (*record.Part, bool) {
	if len(all) == 0 || all[0].Record.Header.Of == nil {
		return nil, false
	}
	first := all[0].Record.Header.Of
	same := func(j instrument.Judged) bool {
		of := j.Record.Header.Of
		return of != nil && of.Plan == first.Plan && of.Source == first.Source && of.Description == first.Description && of.Measures == first.Measures
	}
	return first, !slices.ContainsFunc(all, func(j instrument.Judged) bool { return !same(j) })
}

// measure is a record in a document.
type measure struct {
	instrument.Judged
	name     string     // "1 lifecycle"
	page     *page.Page // its results
	asked    *page.Section
	method   []page.Section
	mistrust []page.Section
}

func newMeasure(i int, one instrument.Judged, l instrument.List, o page.Options) (measure, error) {
	h := &one.Record.Header
	m := measure{Judged: one, name: fmt.Sprintf("%d %s", i+1, page.Heading(h.Experiment)), page: one.Page(o)}
	m.page.Head = append(m.page.Head, page.Labels(one.Record)...)
	m.page.Title = page.Short(page.Dotted(m.name, m.page.Title), page.LongestTitle)
	all := m.page.Sections
	m.page.Sections = nil
	for _, s := range all {
		switch s.Part {
		case page.Mistrust:
			m.mistrust = append(m.mistrust, s)
		case page.Method:
			s.Title = m.name + ": " + s.Title
			m.method = append(m.method, s)
		default:
			m.page.Sections = append(m.page.Sections, s)
		}
	}
	if as := commands(one.Record); as != nil {
		m.method = append(m.method, page.Section{Title: m.name + ": commands run inside", Style: term.Bold, Lists: []page.List{{Items: as}}})
	}
	if m.left() {
		m.page.Sections = []page.Section{{Title: page.Outcome(one.Record), Style: term.Yellow}}
	}
	kind, ok := l.Of(h.Experiment)
	if !ok {
		return m, fmt.Errorf("unknown experiment %q", h.Experiment)
	}
	options := kind.New()
	if err := option.Unmarshal(h.Plan, options); err != nil {
		return m, fmt.Errorf("%s: the record's plan cannot be read: %w", m.name, err)
	}
	words, err := option.Of(options).Stored()
	m.asked = asked(m.name, words)
	return m, err
}

// left reports whether the measure was skipped or could not start.
func (m *measure) left() bool {
	rec := m.Record
	return rec.End != nil && rec.End.Status != "done" && rec.End.Elapsed == 0 && len(rec.Targets) == 0
}

// cover returns the first page, titled with the plan's name.
func cover(measures []measure) *page.Page {
	p := &page.Page{Title: "tare report", Command: "What was measured, and how", Cover: true}
	all := make([]instrument.Judged, len(measures))
	for i := range measures {
		all[i] = measures[i].Judged
	}
	of, one := planOf(all)
	if !one {
		return p
	}
	p.Title = page.Short(term.Clean(of.Plan), page.LongestTitle)
	p.Head = page.Filled(page.Short(term.Clean(of.Description), page.LongestMessage))
	if of.Source != "" {
		p.Head = append(p.Head, "source: "+page.Short(term.Clean(of.Source), page.LongestMessage))
	}
	p.Head = append(p.Head, page.Filled(unfinished(measures, of.Measures))...)
	return p
}

// unfinished describes how much of an incomplete plan the records cover.
func unfinished(measures []measure, planned int) string {
	here, cut := map[int]bool{}, 0
	for i := range measures {
		rec := measures[i].Record
		here[rec.Header.Of.Measure] = true
		if rec.End == nil || rec.End.Status == "interrupted" {
			cut++
		}
	}
	switch {
	case cut > 0:
		return fmt.Sprintf("interrupted: %d of %s did not finish", planned-len(here)+cut, page.Amount(planned, "measure"))
	case len(here) < planned:
		return fmt.Sprintf("%d of %s here", len(here), page.Amount(planned, "measure"))
	}
	return ""
}

// contents lists the measures with their outcomes.
func contents(measures []measure) *page.Section {
	table := page.Names("measure", "begun", "run", "failed", "outcome")
	for i := range measures {
		m := &measures[i]
		failed, total, _ := m.Result()
		table.Row(page.Texts(m.page.Title, page.Heading(page.Known(page.Date(&m.Record.Header))), page.Heading(page.Known(m.Record.Header.RunID)),
			fmt.Sprintf("%d/%d", failed, total), page.Short(term.Clean(page.Outcome(m.Record)), page.LongestMessage))...)
	}
	return &page.Section{Title: "measures", Style: term.Bold, Table: table}
}
