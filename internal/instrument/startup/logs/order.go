package logs

import (
	"bytes"
	"cmp"
	"slices"
)

// Ordered puts the lines of a log in order whose times go back and forth by no more than
// Segments lets pass, and says which line of the log each was, counted from 1. A line
// without a time stays behind the one before it. Where nothing is to be put in order, or
// an entry of the journal lies over several lines, there are none.
func Ordered(text []byte) (sorted []byte, lines []int64) {
	type line struct {
		at     int64
		number int64
		text   []byte
	}
	var all []line
	last, back := int64(0), 0
	for b := range bytes.Lines(text) {
		ns, undated := timeInFront(bytes.TrimSuffix(b, newline))
		if isEntry(b) || undated { // whose time is no other's
			return nil, nil
		}
		if ns == 0 {
			ns = last
		}
		if ns < last {
			back++
		}
		last = ns
		all = append(all, line{ns, int64(len(all) + 1), b})
	}
	if float64(back) <= maxBackward*float64(len(all)) {
		return nil, nil
	}
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	for _, l := range all {
		sorted, lines = append(append(sorted, bytes.TrimSuffix(l.text, newline)...), '\n'), append(lines, l.number)
	}
	return sorted, lines
}

// maxBackward is which part of a log's lines may be older than the one before: programs
// write from several threads.
const maxBackward = 0.05
