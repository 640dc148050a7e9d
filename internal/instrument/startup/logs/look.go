package logs

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"unicode/utf8"
)

// Layout is how the lines of a file lie, by the times in front of them: lines that begin
// with something else belong to those before them.
type Layout struct {
	// Pieces are where time goes back by more than a second, as where somebody put
	// several logs into one, so that each can be read as a [Source] of its own. None is
	// empty. Of a file with more of them than were asked for the whole is one piece, and
	// Ordered is false.
	Pieces  []Segment
	Ordered bool
	// Disorder is how many lines a log has whose times go back and forth by no more than
	// a second, and so often that they have to be put in order, see [Ordered]. It is 0
	// where nothing is to be put in order, or an entry of the journal lies over several
	// lines.
	Disorder int64
	// Width is that of a terminal that cut the lines, in characters: each line that does
	// not begin with a time goes on one that is as long as the longest of all, see
	// [Joined]. It is 0 where that does not hold of every line.
	Width int
}

// Segment is a piece of a file: from a byte up to another, behind so many lines.
type Segment struct {
	From, To int64
	Line     int64
}

// MaxMended is how large logs may be that are put in order, or together again: what
// somebody pasted. Of a larger one Disorder and Width say nothing.
const MaxMended = 16 << 20

// Look goes once through a file, of which it keeps no line.
func Look(r io.Reader, most int) (Layout, error) {
	in := linesOf(r, block)
	p, d, w := segmenting{most: most}, disorder{}, wrapping{}
	for {
		at := in.bytes
		b, long, more := in.next()
		if !more {
			break
		}
		ns, undated := timeInFront(b)
		p.line(b, at, ns, undated)
		if in.bytes <= MaxMended {
			d.line(b, ns, undated)
			w.line(b, long, ns)
		}
	}
	if in.err != nil && !errors.Is(in.err, io.EOF) {
		return Layout{}, in.err
	}
	p.now.To = in.bytes
	l := Layout{Pieces: append(p.done, p.now), Ordered: !p.tooMany, Disorder: d.found(), Width: w.found()}
	if p.tooMany {
		l.Pieces = []Segment{{To: in.bytes}}
	}
	return l, nil
}

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

// disorder counts the lines that are older than the one before.
type disorder struct {
	lines, back, last int64
	foreign           bool // a line has a time that is not its own, or none that can be compared
}

func (d *disorder) line(b []byte, ns int64, undated bool) {
	d.foreign = d.foreign || isEntry(b) || undated
	d.lines++
	if ns == 0 {
		return
	}
	if ns < d.last {
		d.back++
	}
	d.last = ns
}

// maxBackward is which part of a log's lines may be older than the one before:
// programs write from several threads.
const maxBackward = 0.05

func (d *disorder) found() int64 {
	if d.foreign || float64(d.back) <= maxBackward*float64(d.lines) {
		return 0
	}
	return d.lines
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

// Ordered puts the lines of a log in order and says which line of the log each was,
// counted from 1. A line without a time stays behind the one before it.
func Ordered(text []byte) (sorted []byte, numbers []int64) {
	type dated struct {
		at, number int64
		line       []byte
	}
	var all []dated
	last := int64(0)
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, newline)
		if ns, _ := timeInFront(line); ns != 0 {
			last = ns
		}
		all = append(all, dated{last, int64(len(all) + 1), line})
	}
	slices.SortStableFunc(all, func(a, b dated) int { return cmp.Compare(a.at, b.at) })
	for _, l := range all {
		sorted, numbers = append(append(sorted, l.line...), '\n'), append(numbers, l.number)
	}
	return sorted, numbers
}

// Joined puts the lines of a log together again that a terminal cut, and says which line
// of the log each begins with, counted from 1.
func Joined(text []byte) (joined []byte, numbers []int64) {
	number := int64(0)
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, newline), []byte("\r"))
		ns, _ := timeInFront(line)
		if number++; ns != 0 || len(line) == 0 || number == 1 {
			if number > 1 {
				joined = append(joined, '\n')
			}
			numbers = append(numbers, number)
		}
		joined = append(joined, line...)
	}
	return append(joined, '\n'), numbers
}

// timeInFront reads the time in front of a line; 0 where there is none. One without
// a year is of 2000.
func timeInFront(b []byte) (ns int64, undated bool) {
	if len(b) < 16 {
		return 0, false
	}
	switch c := b[0]; {
	case bytes.HasPrefix(b, timeKey):
		ns, _, _ = stampIn(b[len(timeKey):])
		return ns, false
	case isGlog(b):
		if t, ok := glogTime(b); ok {
			ns = t.in(2000)
		}
		return ns, true
	case c == '{':
		return timeOfObject(b), false
	case c == '_' && bytes.HasPrefix(b, arrivedKey):
		return micros(b[len(arrivedKey):]), false
	case c == '<' || isDigit(c) || isMonth(b):
		_, at := priority(b)
		if isFive(b, at) {
			at += 2
		}
		if i := findRecord(b[:min(len(b), 256)]); i >= 0 && isMonth(b[at:]) { // what it carries knows the year
			if ns, _, ok := stampIn(b[i+len(timeKey):]); ok {
				return ns, false
			}
		}
		t, n := stampOf(b[at:])
		if n == 0 || t.local.month == 0 {
			return t.ns, false
		}
		return t.local.in(2000), true
	}
	return 0, false
}

// timeOfObject reads the time of a line of JSON, whose keys may be in any order.
func timeOfObject(b []byte) int64 {
	for _, key := range timesOfObjects {
		if _, after, ok := bytes.Cut(b, key); ok {
			if key[1] == '_' {
				return micros(bytes.TrimLeft(after, " :\""))
			}
			if ns, _, ok := stampIn(bytes.TrimLeft(after, " :")); ok {
				return ns
			}
		}
	}
	return 0
}

var timesOfObjects = [][]byte{[]byte(`"__REALTIME_TIMESTAMP"`), []byte(`"ts"`), []byte(`"time"`)}
