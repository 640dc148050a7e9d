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

// order describes the order of a log's lines by the times of their events.
type order struct {
	back, on int64 // lines older and newer than the previous line
	// jumps counts the lines older than the newest by more than a second. There
	// another log begins, or the clock was set back.
	jumps            int64
	at, newest, line int64 // time of the last line; time and number of the newest
	first, last      end   // before the first jump
	step             step  // at the first jump; to is 0 if another log begins there
	isKnown          bool  // all lines were read
}

// end is the first or the last line of a log.
type end struct {
	at               int64
	pid              int
	program, message []byte
}

// step is a clock set back within a log: its times before and after, ns since 1970.
// Times between the two have no known order.
type step struct{ from, to, line int64 }

const (
	// jump is the minimum step back in time that begins another log. Smaller steps
	// occur because programs log from several threads.
	jump = int64(time.Second)
	// maxBackward is the tolerated share of lines older than the previous one.
	maxBackward = 0.05
	// maxMended is the maximum size of logs that are sorted, in bytes. maxLines is the
	// maximum of their lines in total.
	maxMended = 16 << 20
	maxLines  = maxMended / 64
)

// see records an event. It reports whether the event is the first one of a line with a
// time.
//
// A step back in time means that the clock was set or that another log begins. If the
// clock was set, the same process continues, and the first line of the log is not
// repeated.
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

// isReversed reports whether a log has its last line first.
func (o *order) isReversed() bool { return o.back > 1 && o.back > 2*o.on }

// isMixed reports whether more lines are out of order than concurrent threads explain.
func (o *order) isMixed() bool { return float64(o.back) > maxBackward*float64(o.back+o.on) }

// piece is a line with a time and the following lines without one.
type piece struct {
	at, number int64
	text       []byte
}

// piecesOf splits a log into pieces and returns the number of lines. Lines before the
// first piece have no time.
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
	if number != stats.Lines { // lines within a binary value: do not sort
		number = maxLines + 1
	}
	o.isKnown = true
	return o, all, number, err
}

// sorted sorts the pieces of a log and returns the text with its line numbers. It
// drops duplicate pieces, such as from text pasted twice.
func sorted(all []piece, isReversed bool) (text []byte, numbers []int64) {
	if isReversed { // keep the order of lines with equal times
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

// The range of terminal widths, and the minimum number of truncated lines for a log to
// count as truncated by a terminal.
const (
	narrowest = 40
	widest    = 1000
	fewest    = 3
)

// width returns the width of the terminal that truncated the lines, in characters, or
// 0. Every line of unknown form must follow a line of the maximum length.
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

// inOrder sorts a log if necessary. It returns the sorted text, the line numbers and
// the original order, or nil if the log is sorted or cannot be sorted.
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
		r.miss("order", "%s has its newest line first: the lines were reversed", s.Name)
	case o.isMixed() || r.sorts: // otherwise sorted logs were concatenated
		r.miss("order", "lines of %s were out of order and have been sorted", s.Name)
	}
	r.ordered.bytes, r.ordered.lines = r.ordered.bytes+int64(len(text)), r.ordered.lines+n
	mended, numbers = sorted(all, o.isReversed())
	for i := range numbers {
		numbers[i] += s.Line
	}
	return o, mended, numbers, nil
}

// left records that a log was not sorted.
func (r *Reading) left(name string) {
	r.miss("disorder", "lines of %s are out of order and were not sorted: the limit for all logs is %d MiB and %d lines", name, maxMended>>20, maxLines)
}

// doubt removes the times of a start if its clock was set back during the start, since
// its durations are unknown. Several steps back mean that the log is a concatenation
// of excerpts.
func (r *Reading) doubt(x *record.Start, file int) {
	until := max(x.Ended, x.Began)
	for i := range x.Spans {
		until = max(until, x.Spans[i].Ended)
	}
	if o := r.orders[file]; o != nil && o.jumps == 1 && !o.isReversed() && o.step.to != 0 && x.Began <= o.step.from && until >= o.step.to {
		x.Ended, x.Gaps, x.Spans = 0, nil, nil
		x.Missing = append(x.Missing, record.Missing{What: "clock", Count: 1, Detail: fmt.Sprintf("it was set back by %v at %s:%d: this start has no times",
			cmp.Or(time.Duration(o.step.from-o.step.to).Round(time.Millisecond), time.Millisecond), r.files[file], o.step.line+r.sources[file].Line)})
	}
}
