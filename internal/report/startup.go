package report

import (
	"fmt"
	"io"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Startup writes the report of starts that were watched, or that were put together
// from logs or notes: a record and its judgement. It needs none of the record's
// starts: those that are drawn stand in the judgement. It fails when w does, and on
// a format that there is none of.
func Startup(w io.Writer, format Format, rec *record.Record, v *judge.Startup, o Options) error {
	switch format {
	case JSON:
		return writeValue(w, startupDocumentOf(rec, v))
	case CSV:
		return writeStartupCSV(w, v)
	case Chrome:
		return writeValue(w, chromeOf(v))
	case OTLP:
		return writeValue(w, otlpOf(rec, v))
	case Text, Markdown:
		return writePage(w, format, startupPage(rec, v, o), o)
	}
	return format.Of("startup")
}

func startupPage(rec *record.Record, v *judge.Startup, o Options) *page {
	p := &page{command: "tare startup", title: short(term.Clean(v.Plan.Title), longestTitle), head: startupHead(rec, v, o)}
	p.add(startsTable(v))
	for i := range v.Targets {
		t := &v.Targets[i]
		p.add(drawnStart(v, t, o), inOrder(t, o), byWork(t, o), waits(t, o))
	}
	if len(v.Targets) == 0 {
		p.add(&section{title: "no start was seen"})
	}
	p.add(logsRead(v), guests(v))
	failed := section{title: fmt.Sprintf("failed %d/%d starts", v.Failed, v.Total)}
	if v.Failed > 0 {
		failed.style = term.Red
	}
	found := findings(v.Findings, lanesOf, o)
	p.add(&failed, startsTimed(rec, v), needed(rec.Targets), &found)
	return p
}

// startsOf says a number of starts.
func startsOf(n int) string {
	if n == 1 {
		return "1 start"
	}
	return fmt.Sprintf("%d starts", n)
}

// ofTarget is the title of a section about one target.
func ofTarget(t *judge.StartupTarget, about string) *section {
	return &section{title: heading(known(t.Target)) + ": " + about, style: term.Bold}
}
