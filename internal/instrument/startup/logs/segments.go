package logs

import (
	"bytes"
	"errors"
	"io"
)

// Segment is a piece of a file: from a byte up to another, behind so many lines.
type Segment struct {
	From, To int64
	Line     int64
}

// back is how much older than the newest line before it a line has to be for
// another log to begin there: programs write from several threads.
const back = second

// goesBack tells whether a line that is so much older than the newest begins another
// log. Of times without a year, a year ago is a new year.
func goesBack(d int64, undated bool) bool { return d > back && (!undated || d < 300*day) }

// Segments finds where in a file time goes back by more than a second, as where
// somebody put several logs into one, so that each can be read as a [Source] of its
// own. No piece is empty. Of a file with more than most of such places the whole is
// one piece, and ok is false.
//
// Only the time in front of each line is looked at, so lines that begin with
// something else belong to those before them.
func Segments(r io.Reader, most int) (pieces []Segment, ok bool, err error) {
	l := linesOf(r, block)
	now, newest := Segment{}, [2]int64{} // dated, and without a year
	entry, entryLine := int64(-1), int64(0)
	ok = true
	for line := int64(0); ; line++ {
		at := l.bytes
		b, _, more := l.next()
		if !more {
			break
		}
		if bytes.HasPrefix(b, cursorKey) {
			entry, entryLine = at, line
			continue
		}
		ns, undated := timeInFront(b)
		if ns == 0 {
			continue
		}
		kind := 0
		if undated {
			kind = 1
		}
		if d := newest[kind] - ns; newest[kind] != 0 && goesBack(d, undated) {
			if len(pieces)+1 >= most {
				ok = false
			}
			begins, after := at, line
			if entry >= now.From && bytes.HasPrefix(b, arrivedKey) && entryLine+1 == line {
				begins, after = entry, entryLine
			}
			if ok && begins > now.From {
				now.To = begins
				pieces = append(pieces, now)
				now = Segment{From: begins, Line: after}
			}
			newest = [2]int64{}
		} else if d > 0 && d <= back {
			continue
		}
		newest[kind] = ns
	}
	if l.err != nil && !errors.Is(l.err, io.EOF) {
		return nil, false, l.err
	}
	now.To = l.bytes
	if !ok {
		return []Segment{{To: l.bytes}}, false, nil
	}
	return append(pieces, now), true, nil
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
