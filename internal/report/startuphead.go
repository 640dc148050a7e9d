package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// startupHead says what ran where, or what was read, and how the starts were seen.
func startupHead(rec *record.Record, v *judge.Startup, o Options) []string {
	if !v.Live {
		return []string{
			dotted("tare "+known(rec.Header.Version), "run "+known(rec.Header.RunID), outcome(rec)),
			dotted(unwatched(v), clocks(v)),
		}
	}
	lines := []string{
		ran(rec, v.Plan.Seed),
		targets(rec.Targets, ""),
		dotted(roundsOf(v.Plan.Rounds), strings.Join(methods(v), ", "), clocks(v)),
	}
	if o.Verbose {
		lines = append(lines, surroundings(&rec.Header))
	}
	return lines
}

// unwatched says where starts come from that were not watched.
func unwatched(v *judge.Startup) string {
	if how := methods(v); len(how) > 0 {
		return "not watched: " + strings.Join(how, ", ")
	}
	return "no start was recorded"
}

var methodWords = map[string]string{
	record.MethodBPF:       "watched by BPF programs on the kernel's tracepoints",
	record.MethodTracefs:   "watched through the kernel's trace events",
	record.MethodConnector: "watched through the kernel's process connector",
	record.MethodLogs:      "read from logs",
	record.MethodNotes:     "read from notes",
}

var clockWords = map[string]string{
	record.ClockMonotonic: "times are the host's CLOCK_MONOTONIC",
	record.ClockWall:      "times are the host's time of day, as it stands in the logs",
	record.ClockNone:      "durations without times of day",
}

// methods are the ways in which the starts were seen, each once.
func methods(v *judge.Startup) (out []string) {
	for i := range v.Targets {
		method := v.Targets[i].Method
		word := methodWords[method]
		if word == "" {
			word = heading(method)
		}
		if word != "" && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}

func clocks(v *judge.Startup) string {
	var out []string
	for i := range v.Targets {
		if word := clockWords[v.Targets[i].Clock]; word != "" && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return strings.Join(out, ", ")
}

// startsTimed says of each target what was started and when it counts as
// done.
func startsTimed(rec *record.Record, v *judge.Startup) *section {
	s := &section{title: "what was timed", style: term.Bold}
	run := string(subject.Run)
	items := definitions(rec.Targets, run)
	for i := range v.Targets {
		t := &v.Targets[i]
		if slices.ContainsFunc(rec.Targets, func(of record.Target) bool { return of.Name == t.Target && some([]record.Target{of}, run) }) {
			continue
		}
		key := heading(known(t.Target))
		if t.Command != "" {
			items = append(items, item{key: key, text: t.Command, code: true})
			key = ""
		}
		if done := doneOf[t.Method]; done != "" {
			items = append(items, item{key: key, text: "done: " + done})
		}
	}
	if items == nil {
		s.title += ": nothing"
		return s
	}
	s.lists = []list{{items: items}}
	return s
}

// doneOf is when a start is over that no plan has defined.
var doneOf = map[string]string{
	record.MethodBPF:       "the command has exited",
	record.MethodTracefs:   "the command has exited",
	record.MethodConnector: "the command has exited",
	record.MethodLogs:      "the last container of the start is up, counted from the first line about it",
	record.MethodNotes:     "the wall time that the notes give, or the sum of their figures",
}

// missingOf says what evidence a start lacks.
func missingOf(s *record.Start) []string {
	var out []string
	for i, m := range s.Missing {
		if i == mostListed {
			out = append(out, fmt.Sprintf("and %d more", len(s.Missing)-i))
			break
		}
		text := fmt.Sprintf("%d × %s", m.Count, heading(m.What))
		if m.Detail != "" {
			text += " (" + short(term.Clean(m.Detail), longestTitle) + ")"
		}
		out = append(out, text)
	}
	return out
}
