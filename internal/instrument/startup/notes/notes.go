// Package notes reads what people wrote down of a start by hand: how long each
// command of the runtime took and the engine between them, what `time` said of the
// whole, and what they made of it.
//
//	w/ vm template:
//	kata-runtime create -> 1.7s docker -> 0.39s kata-runtime state 0.009s
//	sum: 2.099s
//	real    0m2.776s
//	credits to docker: 2.776 - 2.099 + 0.39 = 1.067s
//
// A comma in a figure is a decimal comma, as those write it who have one: 1,7s.
//
// Figures become spans that follow each other from 0, the wall time their end, and
// sums and credits claims, which are for others to check. A text without such
// figures gives nothing: logs, mails and pages may be read in whole.
package notes

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tare-bench/tare/record"
)

// maxSize is how long a text can be that somebody wrote, in bytes.
const maxSize = 8 << 20

// What is kept of one text.
const (
	maxStarts = 1000
	maxSpans  = 1000 // of one start
	maxLine   = 16 << 10
	maxTitle  = 80
	// near is how many lines may lie between the parts of a start and what is
	// said of them.
	near = 40
)

// Read finds the starts that a text tells of. Its name is for people. An error is
// one of reading, or that the text is longer than 8 MiB.
func Read(name string, r io.Reader) ([]record.Start, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read notes %s: %w", name, err)
	}
	if len(text) > maxSize {
		return nil, fmt.Errorf("read notes %s: it is longer than 8 MiB; give the part with the figures", name)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	s := scanner{name: name}
	for len(text) > 0 && len(s.starts) <= maxStarts {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		s.number++
		if len(line) > maxLine {
			s.end()
			s.above = ""
			continue
		}
		s.line(cleaned(line))
	}
	s.finish()
	return s.starts, nil
}

// cleaned is a line as people see it: blanks of other kinds are blanks.
func cleaned(line []byte) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(string(line), ""), "\u00a0", " "))
}

// scanner is a text as far as it has been read.
type scanner struct {
	name   string
	number int
	starts []record.Start

	above   string // the nearest line above that is not empty
	parts   []part // of the sequence that is being read
	from    int    // its first line
	title   string
	blank   int           // empty lines since its last part
	now     *record.Start // what the lines after a sequence are said of
	last    int           // the last line of its sequence
	claimed map[string]bool
}

// part is one figure of a sequence.
type part struct {
	name string
	call bool // a command of the runtime, not the engine's time
	took int64
}

// line reads the next line.
func (s *scanner) line(text string) {
	if text == "" {
		s.blank++
		return
	}
	var found []part
	var before string
	var open bool
	if mayHaveParts(text, len(s.parts) > 0) {
		found, before, open = partsOf(text)
	}
	switch {
	case len(found) > 0 && len(s.parts) > 0 && before == "" && s.blank <= 1:
		s.add(found)
	case len(found) > 0:
		s.end()
		if !anyCall(found) {
			s.said(text)
		}
		s.from, s.title = s.number, titleOf(before, s.above)
		s.add(found)
	default:
		s.end()
		s.said(text)
	}
	s.blank = 0
	if !open {
		s.end()
	}
	s.above = text
}

func (s *scanner) add(found []part) {
	if len(s.parts)+len(found) <= maxSpans {
		s.parts = append(s.parts, found...)
	}
	s.last = s.number
}

func anyCall(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.call })
}

// end makes a start of the sequence that has come to its end. One figure alone, or
// figures of which none is a runtime's, are no start.
func (s *scanner) end() {
	parts := s.parts
	s.parts = nil
	if !anyCall(parts) || len(parts) < 2 || len(s.starts) == maxStarts {
		return
	}
	s.finish()
	start := record.Start{
		Type: record.TypeStart, Round: len(s.starts), Target: targetOf(parts), Method: record.MethodNotes, Clock: record.ClockNone,
		Name: s.title, Source: s.source(s.from),
	}
	if start.Name == "" {
		start.Name = start.Source
	}
	at := int64(0)
	for _, p := range parts {
		kind := record.KindEngine
		if p.call {
			kind = record.KindCall
		}
		start.Spans = append(start.Spans, record.Span{Name: p.name, Kind: kind, Began: at, Ended: at + p.took, Source: start.Source})
		at += p.took
	}
	s.starts = append(s.starts, start)
	s.now, s.claimed = &s.starts[len(s.starts)-1], map[string]bool{}
}

// finish closes the start that is being read.
func (s *scanner) finish() {
	if len(s.parts) > 0 {
		s.end()
	}
	if s.now != nil && s.now.Ended == 0 {
		s.now.Missing = append(s.now.Missing, record.Missing{What: "no end", Count: 1, Detail: "no wall time is told, such as time's real"})
	}
	s.now = nil
}

func (s *scanner) source(line int) string { return fmt.Sprintf("%s:%d", s.name, line) }

// said reads what a line after a sequence says of it.
func (s *scanner) said(text string) {
	if s.now == nil {
		return
	}
	if s.number-s.last > near {
		s.finish()
		return
	}
	if wall, ok := wallOf(text); ok && s.now.Ended == 0 {
		s.now.Ended = wall
	}
	if command, id, ok := commandOf(text); ok && s.now.Command == "" {
		s.now.Command = command
		if id != "" {
			s.now.Containers = append(s.now.Containers, id)
		}
	}
	if sum, ok := sumOf(text); ok {
		s.claim("sum", sum)
	}
	if wall, credits, ok := creditsOf(text); ok {
		s.claim("wall", wall)
		s.claim("credits", credits)
	}
}

// claim keeps a figure that somebody computed, the first of its name.
func (s *scanner) claim(name string, value int64) {
	if !s.claimed[name] {
		s.claimed[name] = true
		s.now.Claims = append(s.now.Claims, record.StartClaim{Name: name, Value: value, Source: s.source(s.number)})
	}
}

// targetOf is what a sequence tells of: the engine and the runtime, by the
// programs that it names.
func targetOf(parts []part) string {
	engine, runtime := "", ""
	for _, p := range parts {
		program, _, _ := strings.Cut(p.name, " ")
		switch {
		case p.call && runtime == "" && strings.Contains(p.name, " "):
			runtime = strings.TrimSuffix(program, "-runtime")
		case !p.call && engine == "":
			engine = program
		}
	}
	switch {
	case engine == "" && runtime == "":
		return "runtime"
	case engine == "" || runtime == "":
		return engine + runtime
	}
	return engine + "/" + runtime
}
