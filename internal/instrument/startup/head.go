package startup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// head returns the lines that identify the run, or the logs that were read.
func head(rec *record.Record, v *Judgement) []string {
	if !v.Live {
		how := "no start was recorded"
		if all := methods(v); all != nil {
			how = "not watched: " + strings.Join(all, ", ")
		}
		return []string{
			page.Dotted("tare "+page.Known(rec.Header.Version), "run "+page.Known(rec.Header.RunID), page.Outcome(rec)),
			page.Dotted(how, clocks(v)),
		}
	}
	return append(page.Head(rec, v.Plan.Rounds), v.Plan.Cache.Told("start")...)
}

// whole returns the section about the machine and the method. It returns nil for logs,
// where the head has both.
func whole(rec *record.Record, v *Judgement, o page.Options) *page.Section {
	if !v.Live {
		return nil
	}
	s := page.Run(rec, v.Plan.Seed, "", o.Verbose)
	s.Lists[0].Items = append(s.Lists[0].Items, page.Item{Key: "starts", Text: page.Dotted(strings.Join(methods(v), ", "), clocks(v))})
	return s
}

// methodWords has the description of each method, and the default end of a start.
var methodWords = map[string]struct{ how, done string }{
	record.MethodBPF:       {"watched by BPF programs on the kernel's tracepoints", "the command has exited"},
	record.MethodTracefs:   {"watched through the kernel's trace events", "the command has exited"},
	record.MethodConnector: {"watched through the kernel's process connector", "the command has exited"},
	record.MethodLogs:      {"read from logs", "every container of the first attempt runs, counted from the first request"},
	record.MethodNotes:     {"read from notes", "the wall time in the notes, or the sum of their figures"},
}

var clockWords = map[string]string{
	record.ClockMonotonic: "times are the host's CLOCK_MONOTONIC",
	record.ClockWall:      "times are the host's wall clock, from the logs",
	record.ClockNone:      "durations without times of day",
}

// methods returns the distinct methods of the starts, as text.
func methods(v *Judgement) []string {
	return words(v, func(t *Target) string { return cmp.Or(methodWords[t.Method].how, page.Heading(t.Method)) })
}

func clocks(v *Judgement) string {
	return strings.Join(words(v, func(t *Target) string { return clockWords[t.Clock] }), ", ")
}

// words returns the distinct non-empty texts of the targets.
func words(v *Judgement, of func(*Target) string) (out []string) {
	for i := range v.Targets {
		if word := of(&v.Targets[i]); word != "" && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}

// startsTimed returns the section with the command of each target and the end of its
// start.
func startsTimed(rec *record.Record, v *Judgement) *page.Section {
	s := &page.Section{Title: "what was timed", Style: term.Bold, Part: page.Method}
	run := "run"
	items := page.Definitions(rec.Targets, run)
	for i := range v.Targets {
		t := &v.Targets[i]
		if slices.ContainsFunc(rec.Targets, func(of record.Target) bool {
			return of.Name == t.Target && of.Operations[run].Done != "" && of.Operations[run].Absent == ""
		}) {
			continue
		}
		key := page.Heading(page.Known(t.Target))
		if t.Command != "" {
			items = append(items, page.Item{Key: key, Text: t.Command, Code: true})
			key = ""
		}
		if done := methodWords[t.Method].done; done != "" {
			items = append(items, page.Item{Key: key, Text: "done: " + done})
		}
	}
	if items == nil {
		s.Title += ": nothing"
		return s
	}
	s.Lists = []page.List{{Items: items}}
	return s
}

// missingOf returns the missing evidence of a start, as text.
func missingOf(s *record.Start) []string {
	var out []string
	for i, m := range s.Missing {
		if i == page.MaxListed {
			out = append(out, fmt.Sprintf("and %d more", len(s.Missing)-i))
			break
		}
		text := fmt.Sprintf("%d × %s", m.Count, page.Heading(m.What))
		if m.Detail != "" {
			text += " (" + page.Short(term.Clean(m.Detail), page.LongestTitle) + ")"
		}
		out = append(out, text)
	}
	return out
}
