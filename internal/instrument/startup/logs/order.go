package logs

import (
	"bytes"
	"cmp"
	"io"
	"slices"
)

// Disorder is how many lines a log has whose times go back and forth by no more than
// Segments lets pass, and so often that its lines have to be put in order. It is 0 where
// nothing is to be put in order, or an entry of the journal lies over several lines. No
// line is kept.
func Disorder(r io.Reader) (lines int64) {
	lines, back, own := eachDated(r, func(dated) {})
	if !own || float64(back) <= maxBackward*float64(lines) {
		return 0
	}
	return lines
}

// Ordered puts the lines of a log in order and says which line of the log each was,
// counted from 1. A line without a time stays behind the one before it.
func Ordered(text []byte) (sorted []byte, numbers []int64) {
	var all []dated
	eachDated(bytes.NewReader(text), func(l dated) { all = append(all, l) })
	slices.SortStableFunc(all, func(a, b dated) int { return cmp.Compare(a.at, b.at) })
	sorted, numbers = make([]byte, 0, len(text)+1), make([]int64, 0, len(all))
	for _, l := range all {
		sorted, numbers = append(append(sorted, bytes.TrimSuffix(text[l.from:l.to], newline)...), '\n'), append(numbers, l.number)
	}
	return sorted, numbers
}

// dated is a line of a log: when it was written, which one it is, and where it stands.
type dated struct{ at, number, from, to int64 }

// eachDated goes through the lines of a log and says how many there are, how many are older
// than the one before, and whether each has a time of its own or that of the one before.
func eachDated(r io.Reader, each func(dated)) (lines, back int64, own bool) {
	in, now := linesOf(r, block), dated{}
	for {
		now.from = in.bytes
		b, _, more := in.next()
		if !more {
			return now.number, back, true
		}
		ns, undated := timeInFront(b)
		if isEntry(b) || undated { // whose time is no other's
			return now.number, back, false
		}
		if ns != 0 {
			if ns < now.at {
				back++
			}
			now.at = ns
		}
		now.number, now.to = now.number+1, in.bytes
		each(now)
	}
}

// maxBackward is which part of a log's lines may be older than the one before: programs
// write from several threads.
const maxBackward = 0.05
