// Package report shows a judged record to people and to programs.
//
// A report is made from a record and its judgement and from nothing else, so
// it can be made again years later on another machine. The text and the
// Markdown form are the same sections, drawn twice: what ran where, the medians
// with their intervals and comparisons, how the lanes of a batch fared, the
// table in the form of the iSulad performance report, what exactly was timed,
// and what to mistrust; of an overhead run whose memory and CPU it is, which
// cgroup is charged, and what one more sandbox costs; of a storage run what I/O
// each volume gives and which figures are a disk's; of starts where their time
// went, one of them drawn; of BPF programs what they took of a core and of the node,
// and whose limit paid. JSON and CSV are for programs: times in nanoseconds,
// nothing rounded away that a reader could miss. Starts can be had as traces, too,
// for the viewers that there are.
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
)

// Format is a form of report.
type Format string

// The formats.
const (
	Text     Format = "text" // for a terminal
	JSON     Format = "json"
	Markdown Format = "md" // as GitHub draws it
	CSV      Format = "csv"
	Chrome   Format = "chrome" // the drawn starts as trace events, which Perfetto opens; of startup only
	OTLP     Format = "otlp"   // the drawn starts as spans of OpenTelemetry; of startup only
)

// formats are those that every report has, traces those of starts.
var (
	formats = []Format{Text, JSON, Markdown, CSV}
	traces  = []Format{Chrome, OTLP}
)

// ParseFormat returns the format of that name. Not every experiment has each, see
// [Format.Of].
func ParseFormat(s string) (Format, error) {
	f := Format(s)
	if slices.Contains(formats, f) || slices.Contains(traces, f) {
		return f, nil
	}
	return "", fmt.Errorf("unknown format %q: the formats are %s, and of startup %s", s, named(formats), named(traces))
}

// Of says why there is no report of an experiment in this format, nil where there
// is one: only a start can be drawn as a trace.
func (f Format) Of(experiment string) error {
	if _, err := ParseFormat(string(f)); err != nil {
		return err
	}
	if experiment != "startup" && slices.Contains(traces, f) {
		return fmt.Errorf("format %q is of startup only: the formats of %s are %s", f, experiment, named(formats))
	}
	return nil
}

func named(all []Format) string {
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// Options say how a report is drawn.
type Options struct {
	Width   int    // columns of the terminal; 0: no limit. Text only
	Colour  bool   // text only
	Subject string // the target that the iSulad form compares with every other; "": the plan's, or else every other with the baseline
	Verbose bool   // the machine, every stamp, resources and the reason of every verdict
	Explain bool   // of an overhead run: the fact behind every role, and every cgroup's path
}

func writePage(w io.Writer, format Format, p *page, o Options) error {
	if format == Markdown {
		return writeMarkdown(w, p)
	}
	return writeText(w, p, o)
}
