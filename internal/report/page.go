package report

import (
	"fmt"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// page is a report before it is drawn as text or Markdown.
type page struct {
	title    string // the plan's; "" where it has none
	command  string // that made the record, which stands for a title in Markdown; "" for lifecycle
	head     []string
	sections []section
}

// section is a title with a table, or lists, or neither, and remarks below.
type section struct {
	title   string
	picture *picture
	table   *spread
	lists   []list
	block   *block
	notes   []string
	style   term.Style // of the title
}

// block is a text to be copied as it stands.
type block struct {
	language string
	lines    []string
}

// list is rows of a key and a text, under a heading where there is one.
type list struct {
	heading string
	items   []item
}

// item is one text of a list. Without a key it goes on with the one above.
type item struct {
	key, text string
	code      bool // a command
	style     term.Style
}

// longestTitle is where a title is cut: it is to be one line.
const longestTitle = 200

func pageOf(rec *record.Record, l *judge.Lifecycle, o Options) *page {
	p := &page{title: short(term.Clean(l.Plan.Title), longestTitle), head: head(rec, l, o)}
	for i := range l.Tables {
		t := &l.Tables[i]
		p.sections = append(p.sections, medians(l, t))
		if t.Lanes > 1 {
			p.sections = append(p.sections, lanes(t))
		}
		if hasRoles(t) {
			p.sections = append(p.sections, roles(t))
		}
		if o.Verbose {
			p.sections = append(p.sections, details(t))
		}
	}
	if len(l.Tables) == 0 {
		p.sections = append(p.sections, section{title: "no measured round was begun"})
	}
	p.sections = append(p.sections, failed(l))
	for i := range l.Tables {
		p.sections = append(p.sections, isulad(l, &l.Tables[i], o.Subject))
	}
	p.sections = append(p.sections, timed(l), found(l, o))
	return p
}

// failed is the line that no report is without: a failure is not a time.
func failed(l *judge.Lifecycle) section {
	s := section{title: fmt.Sprintf("failed %d/%d operations, warm-up included", l.Failed, l.Total)}
	if l.Failed > 0 {
		s.style = term.Red
	}
	return s
}

func lanesOf(n int) string {
	if n == 1 {
		return "1 lane"
	}
	return fmt.Sprintf("%d lanes", n)
}

func roundsOf(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}
