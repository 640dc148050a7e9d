package logfiles

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// order is how the lines of a log lie, by the times of their events.
type order struct {
	back, on int64 // lines that are older, and newer, than the line before them
	// jumps are lines that are older by more than a second than the newest: there another
	// log begins, or the clock was set back.
	jumps            int64
	at, newest, line int64 // of the last line; of the newest
	first, last      end   // before the first jump
	step             step  // at the first jump; to is 0 where another log begins there
	isKnown          bool  // all lines have been seen
}

// end is a line at the beginning or the end of a log.
type end struct {
	at               int64
	pid              int
	program, message []byte
}

// step is a clock that was set back while somebody wrote a log: from and to are what it
// showed, ns since 1970. No time between the two is known to be before another.
type step struct{ from, to, line int64 }

const (
	// jump is how much older than the newest line before it a line has to be for
	// another log to begin there: programs write from several threads.
	jump = int64(time.Second)
	// maxBackward is which part of a log's lines may be older than the one before.
	maxBackward = 0.05
	// maxMended is how large logs may be that are put in order, and maxLines how many
	// lines all of them may have.
	maxMended = 16 << 20
	maxLines  = maxMended / 64
)

// see takes notice of an event, and reports whether it is the first of a line with a time.
//
// Where time goes back since the clock did, and not since another log begins, the same
// process writes on, and does not say once more what the log began with, as in a file that
// holds the same log twice.
func (o *order) see(e *logs.Event) bool {
	at := cmp.Or(e.Arrived, e.Time)
	if o == nil || o.isKnown || at <= 0 || e.Line == o.line {
		return false
	}
	switch {
	case at < o.at:
		o.back++
	case at > o.at && o.at != 0:
		o.on++
	}
	if o.newest-at > jump {
		if o.jumps++; o.jumps == 1 {
			o.step.line = e.Line
		}
		o.newest = 0
	}
	o.at, o.newest, o.line = at, max(o.newest, at), e.Line
	switch first, last := &o.first, &o.last; {
	case e.Guest:
	case o.jumps == 0:
		if last.at, last.pid, last.program = e.Time, e.Pid, append(last.program[:0], e.Program...); first.at == 0 {
			first.at, first.message = e.Time, bytes.Clone(e.Message)
		}
	case last.pid != 0:
		if last.pid == e.Pid && bytes.Equal(last.program, e.Program) && (first.at != e.Time || !bytes.Equal(first.message, e.Message)) {
			o.step.from, o.step.to = last.at, e.Time
		}
		last.pid = 0
	}
	return true
}

// isReversed reports whether a log runs from its last line to its first.
func (o *order) isReversed() bool { return o.back > 1 && o.back > 2*o.on }

// isMixed reports whether more lines are older than the one before than several threads
// write so.
func (o *order) isMixed() bool { return float64(o.back) > maxBackward*float64(o.back+o.on) }

// piece is a line with a time, and those behind it without one.
type piece struct {
	at, number int64
	text       []byte
}

// piecesOf are those of a log, of which what stands before the first has no time, and how many
// lines it has.
func piecesOf(ctx context.Context, s logs.Source, text []byte) (o *order, all []piece, lines int64, err error) {
	o = &order{}
	all = []piece{{number: 1}}
	s.Reader = bytes.NewReader(text)
	stats, err := logs.Read(ctx, []logs.Source{s}, func(e *logs.Event) error {
		if o.see(e) && len(all) <= maxLines {
			all = append(all, piece{at: o.at, number: e.Line})
		}
		return nil
	})
	i, number, begin, at := 0, int64(0), 0, 0
	for line := range bytes.Lines(text) {
		if number++; i+1 < len(all) && all[i+1].number == number {
			all[i].text, begin = text[begin:at], at
			i++
		}
		at += len(line)
	}
	all[i].text = text[begin:]
	if number != stats.Lines { // some are of a binary value: these are not put in order
		number = maxLines + 1
	}
	o.isKnown = true
	return o, all, number, err
}

// sorted puts the pieces of a log in order of time and returns its text with the number of
// each line. Pieces that are there twice, since they were pasted twice, are there once.
func sorted(all []piece, isReversed bool) (text []byte, numbers []int64) {
	if isReversed { // lines of the same time change places
		slices.Reverse(all)
	}
	slices.SortStableFunc(all, func(a, b piece) int { return cmp.Compare(a.at, b.at) })
	for i, p := range all {
		isTwice := false
		for j := i - 1; j >= 0 && all[j].at == p.at && p.at%int64(time.Second) != 0 && !isTwice; j-- {
			isTwice = bytes.Equal(bytes.TrimRight(all[j].text, "\n"), bytes.TrimRight(p.text, "\n"))
		}
		for line := range bytes.Lines(p.text) {
			if !isTwice {
				text, numbers = append(append(text, bytes.TrimSuffix(line, []byte("\n"))...), '\n'), append(numbers, p.number)
			}
			p.number++
		}
	}
	return text, numbers
}

// A terminal has at least and at most so many columns, and a log is taken to have been cut
// at its width where at least so many lines were.
const (
	narrowest = 40
	widest    = 1000
	fewest    = 3
)

// width is that of a terminal that cut the lines, in characters: each line that does not
// begin as one of a known form follows one that is as long as the longest of all. It is 0
// where that does not hold of every line.
func width(text []byte) (columns int) {
	longest, cuts, before := 0, 0, 0
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) > 0 && !logs.Begins(line) {
			if cuts++; cuts > 1 && before != columns {
				return 0
			}
			columns = before
		}
		before = utf8.RuneCount(line)
		longest = max(longest, before)
	}
	if cuts < fewest || columns != longest || columns < narrowest || columns > widest {
		return 0
	}
	return columns
}

// inOrder is a log whose lines had to be put in order, with the numbers of its lines, and
// how they lay; nil where they had not, or could not be.
func (r *Reading) inOrder(ctx context.Context, s logs.Source, text []byte) (o *order, mended []byte, numbers []int64, err error) {
	o, all, n, err := piecesOf(ctx, s, text)
	if columns := width(text); columns > 0 && err == nil {
		err = fmt.Errorf("lines are cut at %d columns: paste the whole lines", columns)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	switch isReversed := o.isReversed(); {
	case !isReversed && o.jumps == 0 && !o.isMixed() && (!r.sorts || o.back == 0):
		return o, nil, nil, nil
	case r.ordered.bytes+int64(len(text)) > maxMended || r.ordered.lines+n > maxLines:
		r.left(s.Name)
		return o, nil, nil, nil
	case isReversed:
		r.miss("order", "%s runs backwards: it was turned round", s.Name)
	case o.isMixed() || r.sorts: // else logs, each in order, were put into one
		r.miss("order", "lines of %s that were out of order were put in order", s.Name)
	}
	r.ordered.bytes, r.ordered.lines = r.ordered.bytes+int64(len(text)), r.ordered.lines+n
	mended, numbers = sorted(all, o.isReversed())
	for i := range numbers {
		numbers[i] += s.Line
	}
	return o, mended, numbers, nil
}

// left says that a log was left as it is.
func (r *Reading) left(name string) {
	r.miss("disorder", "lines of %s are not in order of time, and were left so: of all logs %d MiB and %d lines at most are put in order", name, maxMended>>20, maxLines)
}

// doubt takes the times from a start that begins in a file and beside which the clock of
// that was set back: how long it took is not known, nor what lay between its lines. Where
// time goes back more than once, several greps were pasted one after another.
func (r *Reading) doubt(x *record.Start, file int) {
	until := max(x.Ended, x.Began)
	for i := range x.Spans {
		until = max(until, x.Spans[i].Ended)
	}
	if o := r.orders[file]; o != nil && o.jumps == 1 && !o.isReversed() && o.step.to != 0 && x.Began <= o.step.from && until >= o.step.to {
		x.Ended, x.Gaps, x.Spans = 0, nil, nil
		x.Missing = append(x.Missing, record.Missing{What: "clock", Count: 1, Detail: fmt.Sprintf("it was set back by %v at %s:%d, so that this start has no times",
			cmp.Or(time.Duration(o.step.from-o.step.to).Round(time.Millisecond), time.Millisecond), r.files[file], o.step.line+r.sources[file].Line)})
	}
}
