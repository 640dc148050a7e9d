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
	// Pieces are where time goes back by more than a second, as in several logs that were
	// put into one file, so that each can be read as a [Source] of its own. None is empty.
	// Of a file with more of them than were asked for the whole is one piece, and Ordered
	// is false.
	Pieces  []Segment
	Ordered bool
	// Back and On are how many lines are older, and how many newer, than the line before
	// them. Both are 0 where an entry of the journal lies over several lines.
	Back, On int64
	Lines    int64
	// Width is that of a terminal that cut the lines, in characters: each line that does
	// not begin with a time follows one that is as long as the longest of all. It is 0
	// where that does not hold of every line.
	Width int
}

// Segment is a piece of a file: from a byte up to another, behind so many lines.
type Segment struct {
	From, To int64
	Line     int64
}

// MaxMended is how large logs may be that are put in order.
const MaxMended = 16 << 20

// Look goes once through a file, of which it keeps no line.
func Look(r io.Reader, most int) (Layout, error) {
	in := linesOf(r, block)
	p, w, l := segmenting{most: most}, wrapping{}, Layout{}
	var last [2]int64 // times: with a year, and without one
	entries := false
	for {
		at := in.bytes
		b, long, more := in.next()
		if !more {
			break
		}
		ns, undated := timeInFront(b, noYear)
		p.line(b, at, ns, undated)
		if in.bytes <= MaxMended {
			w.line(b, long, ns)
		}
		entries = entries || isEntry(b)
		before := &last[0]
		if undated {
			before = &last[1]
		}
		switch {
		case ns == 0:
			continue
		case *before > ns:
			l.Back++
		case *before < ns && *before != 0:
			l.On++
		}
		*before = ns
	}
	if in.err != nil && !errors.Is(in.err, io.EOF) {
		return Layout{}, in.err
	}
	if entries {
		l.Back, l.On = 0, 0
	}
	p.now.To, l.Lines = in.bytes, p.lines
	l.Pieces, l.Ordered, l.Width = append(p.done, p.now), !p.tooMany, w.found()
	if p.tooMany {
		l.Pieces = []Segment{{To: in.bytes}}
	}
	return l, nil
}

// IsReversed reports whether a log runs from its last line to its first.
func (l *Layout) IsReversed() bool { return l.Back > 1 && l.Back > 2*l.On }

// segmenting finds where one log ends and another begins.
type segmenting struct {
	most        int
	done        []Segment
	now         Segment
	tooMany     bool
	lines       int64
	newest      [2]int64 // times: with a year, and without one
	cursor      int64    // where the last entry of the journal begins with its cursor
	afterCursor int64    // how many lines there are up to and with that
}

// back is how much older than the newest line before it a line has to be for
// another log to begin there: programs write from several threads.
const back = second

// line takes a line that begins at a byte.
func (p *segmenting) line(b []byte, at, ns int64, undated bool) {
	before := p.lines
	p.lines++
	if bytes.HasPrefix(b, cursorKey) {
		p.cursor, p.afterCursor = at, p.lines
		return
	} else if ns == 0 {
		return
	}
	newest := &p.newest[0]
	if undated {
		newest = &p.newest[1]
	}
	switch d := *newest - ns; {
	case *newest != 0 && d > back && (!undated || d < 300*day): // a year ago without a year is a new year
		if p.afterCursor == before && bytes.HasPrefix(b, arrivedKey) && p.cursor >= p.now.From {
			at, before = p.cursor, before-1
		}
		p.tooMany = p.tooMany || len(p.done)+1 >= p.most
		if !p.tooMany && at > p.now.From {
			p.now.To = at
			p.done, p.now = append(p.done, p.now), Segment{From: at, Line: before}
		}
		p.newest = [2]int64{}
	case d > 0 && d <= back:
		return
	}
	*newest = ns
}

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
// counted from 1. A line without a time stays behind the one before it. Of a reversed log
// lines of the same time change places.
func Sorted(text []byte, isReversed bool) (sorted []byte, numbers []int64) {
	type dated struct {
		at, number int64
		from, to   int // in the text
	}
	var all []dated
	year, number, at := noYear, int64(0), 0
	for line := range bytes.Lines(text) {
		if ns, undated := timeInFront(line, noYear); ns != 0 && !undated {
			year = time.Unix(0, ns).UTC().Year()
			break
		}
	}
	for line := range bytes.Lines(text) {
		number++
		at += len(line)
		if ns, _ := timeInFront(line, year); ns != 0 || len(all) == 0 {
			all = append(all, dated{ns, number, at - len(line), at})
		} else {
			all[len(all)-1].to = at
		}
	}
	if isReversed {
		slices.Reverse(all)
	}
	slices.SortStableFunc(all, func(a, b dated) int { return cmp.Compare(a.at, b.at) })
	for _, d := range all {
		for line := range bytes.Lines(text[d.from:d.to]) {
			sorted, numbers = append(append(sorted, bytes.TrimSuffix(line, newline)...), '\n'), append(numbers, d.number)
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
