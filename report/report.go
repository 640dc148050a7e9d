// Package report shows a judged record to people and to programs.
//
// A report is made from a record and its judgement and from nothing else, so
// it can be made again years later on another machine. The text and the
// Markdown form are the same sections, drawn twice: what ran where, the medians
// with their intervals and comparisons, how the lanes of a batch fared, the
// table in the form of the iSulad performance report, what exactly was timed,
// and what to mistrust. JSON and CSV are for programs: times in nanoseconds,
// nothing rounded away that a reader could miss.
//
// Everything that stands in a record may have come from others. In text,
// Markdown and CSV it passes [term.Clean]; JSON keeps it exactly and escapes
// what a terminal would obey.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tare-bench/tare/judge"
	"github.com/tare-bench/tare/record"
)

// Format is a form of report.
type Format string

// The formats.
const (
	Text     Format = "text" // for a terminal
	JSON     Format = "json"
	Markdown Format = "md" // as GitHub draws it
	CSV      Format = "csv"
)

var formats = []Format{Text, JSON, Markdown, CSV}

// ParseFormat returns the format of that name.
func ParseFormat(s string) (Format, error) {
	if f := Format(s); slices.Contains(formats, f) {
		return f, nil
	}
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return "", fmt.Errorf("unknown format %q: the formats are %s", s, strings.Join(names, ", "))
}

// Options say how a report is drawn.
type Options struct {
	Width   int    // columns of the terminal; 0: no limit. Text only
	Colour  bool   // text only
	Subject string // the target that the iSulad form compares with every other; "": the plan's, or else every other with the baseline
	Verbose bool   // the machine, every stamp, resources and the reason of every verdict
}

// Lifecycle writes the report of a lifecycle run: a record and its judgement.
// It fails when w does, and on a format or a subject that there is none of.
func Lifecycle(w io.Writer, format Format, rec *record.Record, l *judge.Lifecycle, o Options) error {
	if o.Subject == "" && weighed(l, l.Plan.Subject) {
		o.Subject = l.Plan.Subject
	}
	if o.Subject != "" && !weighed(l, o.Subject) {
		return fmt.Errorf("subject %q is not among the targets of the record", o.Subject)
	}
	switch format {
	case Text:
		return writeText(w, pageOf(rec, l, o), o)
	case Markdown:
		return writeMarkdown(w, pageOf(rec, l, o))
	case JSON:
		return writeJSON(w, rec, l)
	case CSV:
		return writeCSV(w, l)
	}
	_, err := ParseFormat(string(format))
	return err
}

func weighed(l *judge.Lifecycle, name string) bool {
	return slices.ContainsFunc(l.Targets, func(t record.Target) bool { return t.Name == name })
}
