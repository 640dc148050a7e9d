package logs

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"time"
	"unicode/utf8"
)

// Layout is how the lines of a file lie, by the times in front of them: lines that begin
// with something else belong to those before them.
type Layout struct {
	Lines int64
	// Back and On are how many lines are older, and how many newer, than the line before
	// them. Jumps are how many are older by more than a second than the newest: there another
	// log begins, or the clock was set back. Before is how much of the file lies before
	// the first of them.
	Back, On, Jumps int64
	Before          Segment
	// Width is that of a terminal that cut the lines, in characters: each line that does
	// not begin with a time follows one that is as long as the longest of all. It is 0
	// where that does not hold of every line.
	Width int
}

// Segment is so many bytes and lines of a file.
type Segment struct{ Bytes, Lines int64 }

// MaxMended is how large logs may be that are put in order.
const MaxMended = 16 << 20

// jump is how much older than the newest line before it a line has to be for
// another log to begin there: programs write from several threads.
const jump = second

// Look goes once through a file, of which it keeps no line.
func Look(r io.Reader) (l Layout, err error) {
	in, w := linesOf(r, block), wrapping{}
	var last, newest [2]int64 // times: with a year, and without one
	for {
		at := in.bytes
		b, long, more := in.next()
		if !more {
			break
		}
		l.Lines++
		ns, undated := timeInFront(b, noYear)
		if in.bytes <= MaxMended {
			w.line(b, long, ns)
		}
		kind := 0
		if undated {
			kind = 1
		}
		before, most := &last[kind], &newest[kind]
		switch {
		case ns == 0:
			continue
		case *before > ns:
			l.Back++
		case *before < ns && *before != 0:
			l.On++
		}
		if d := *most - ns; *most != 0 && d > jump && (!undated || d < 300*day) { // a year ago without a year is a new year
			if l.Jumps++; l.Jumps == 1 {
				l.Before = Segment{at, l.Lines - 1}
			}
			newest = [2]int64{}
		}
		*before, *most = ns, max(*most, ns)
	}
	if l.Width = w.found(); errors.Is(in.err, io.EOF) {
		in.err = nil
	}
	return l, in.err
}

// IsReversed reports whether a log runs from its last line to its first.
func (l *Layout) IsReversed() bool { return l.Back > 1 && l.Back > 2*l.On }

// wrapping finds lines that go on the one before them.
type wrapping struct {
	width, last, longest, cuts int
	not                        bool
}

// A terminal has at least and at most so many columns, and a log is taken to have been cut
// at its width where at least so many lines were.
const (
	narrowest = 40
	widest    = 1000
	fewest    = 3
)

func (w *wrapping) line(b []byte, long bool, ns int64) {
	w.not = w.not || long || isEntry(b)
	if len(b) > 0 && ns == 0 {
		w.cuts++
		w.not = w.not || w.cuts > 1 && w.last != w.width
		w.width = w.last
	}
	w.last = utf8.RuneCount(b)
	w.longest = max(w.longest, w.last)
}

func (w *wrapping) found() int {
	if w.not || w.cuts < fewest || w.width != w.longest || w.width < narrowest || w.width > widest {
		return 0
	}
	return w.width
}

// Sorted puts the lines of a log in order of time and says which line of the log each was,
// counted from 1. A line without a time stays behind the one before it, as do the lines of
// an entry of the journal. Lines that are there twice, since they were pasted twice, are
// there once. Of a reversed log lines of the same time change places.
func Sorted(text []byte, isReversed bool) (sorted []byte, numbers []int64) {
	type dated struct {
		at, number int64
		lines      []byte
	}
	var all []dated
	year, number, at, isCursor := noYear, int64(0), 0, false
	for line := range bytes.Lines(text) {
		if ns, undated := timeInFront(bytes.TrimSuffix(line, newline), noYear); ns != 0 && !undated {
			year = time.Unix(0, ns).UTC().Year()
			break
		}
	}
	for line := range bytes.Lines(text) {
		number++
		at += len(line)
		ns, _ := timeInFront(bytes.TrimSuffix(line, newline), year)
		switch last := len(all) - 1; {
		case last < 0 || bytes.HasPrefix(line, cursorKey) || ns != 0 && !isCursor:
			if last >= 0 && ns%second == 0 && ns == all[last].at/second*second {
				ns = all[last].at // a time in whole seconds is as good as the one before it
			}
			all = append(all, dated{ns, number, text[at-len(line) : at]})
		default:
			d := &all[last]
			d.lines = text[at-len(d.lines)-len(line) : at]
			if isCursor {
				d.at = ns
			}
		}
		isCursor = bytes.HasPrefix(line, cursorKey)
	}
	if isReversed {
		slices.Reverse(all)
	}
	slices.SortStableFunc(all, func(a, b dated) int { return cmp.Compare(a.at, b.at) })
	for i, d := range all {
		isTwice := false
		for j := i - 1; j >= 0 && all[j].at == d.at && d.at%second != 0 && !isTwice; j-- {
			isTwice = bytes.Equal(bytes.TrimRight(all[j].lines, "\n"), bytes.TrimRight(d.lines, "\n"))
		}
		for line := range bytes.Lines(d.lines) {
			if !isTwice {
				sorted, numbers = append(append(sorted, bytes.TrimSuffix(line, newline)...), '\n'), append(numbers, d.number)
			}
			d.number++
		}
	}
	return sorted, numbers
}

// noYear is the year of times without one, where no line has any.
const noYear = 2000

// timeInFront reads the time in front of a line, or that of the record in it; 0 where there
// is none. One without a year is of a given one.
func timeInFront(b []byte, year int) (ns int64, undated bool) {
	if len(b) < 16 {
		return 0, false
	}
	switch c := b[0]; {
	case bytes.HasPrefix(b, timeKey):
		ns, _, _ = stampIn(b[len(timeKey):])
		return ns, false
	case isGlog(b):
		if t, ok := glogTime(b); ok {
			ns = t.in(year)
		}
		return ns, true
	case c == '_' && bytes.HasPrefix(b, arrivedKey):
		return micros(b[len(arrivedKey):]), false
	case c == '<' || isDigit(c) || isMonth(b):
		if ns := recordTime(b); ns != 0 { // what it carries knows the year
			return ns, false
		}
		_, at := priority(b)
		if isFive(b, at) {
			at += 2
		}
		switch t, n := stampOf(b[at:]); {
		case n > 0 && t.local.month != 0:
			return t.local.in(year), true
		case n > 0:
			return t.ns, false
		}
	case c == '{':
		if ns := timeOfObject(b); ns != 0 {
			return ns, false
		}
	}
	if ns := recordTime(b); ns != 0 {
		return ns, false
	}
	if e, ok := kubeEventOf(b); ok {
		return e.eventTime(), false
	}
	return 0, false
}

// recordTime reads the time of a record that begins near the front of a line, inside quotes
// or not.
func recordTime(b []byte) int64 {
	b = b[:min(len(b), 512)]
	for {
		_, after, ok := bytes.Cut(b, timeKey)
		if !ok {
			return 0
		}
		if b = bytes.TrimLeft(after, `\"`); isDate(b) {
			ns, _, _ := stampIn(b)
			return ns
		}
	}
}

// timeOfObject reads the time of a line of JSON, whose keys may be in any order.
func timeOfObject(b []byte) int64 {
	for _, key := range timesOfObjects {
		if _, after, ok := bytes.Cut(b, key); ok {
			if key[1] == '_' {
				return micros(bytes.TrimLeft(after, " :\""))
			}
			if ns, _, ok := stampIn(bytes.TrimLeft(after, " :\"")); ok {
				return ns
			}
		}
	}
	return 0
}

var timesOfObjects = [][]byte{[]byte(`"__REALTIME_TIMESTAMP"`), []byte(`"ts"`), []byte(`"time"`)}
