package logs

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// A terminal has at least and at most so many columns, and a log is taken to have been cut
// at its width where at least so many lines were.
const (
	narrowest = 40
	widest    = 1000
	fewest    = 3
)

// Wrapped is the width at which a terminal cut a log's lines, in characters: each line that
// does not begin with a time goes on one that is as long as the longest of all. It is 0
// where that does not hold of every line.
func Wrapped(r io.Reader) (width int) {
	in, last, longest, cuts := linesOf(r, block), 0, 0, 0
	for {
		b, long, more := in.next()
		if !more {
			break
		}
		if long || isEntry(b) {
			return 0
		}
		if goesOn(b) {
			if cuts++; cuts > 1 && last != width {
				return 0
			}
			width = last
		}
		last = utf8.RuneCount(b)
		longest = max(longest, last)
	}
	if cuts < fewest || width != longest || width < narrowest || width > widest {
		return 0
	}
	return width
}

// Joined puts the lines of such a log together again and says which line of the log each
// begins with, counted from 1.
func Joined(text []byte) (joined []byte, numbers []int64) {
	joined = make([]byte, 0, len(text)+1)
	number := int64(0)
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, newline), []byte("\r"))
		if number++; !goesOn(line) || number == 1 {
			if number > 1 {
				joined = append(joined, '\n')
			}
			numbers = append(numbers, number)
		}
		joined = append(joined, line...)
	}
	return append(joined, '\n'), numbers
}

// goesOn says whether a line has no beginning of its own.
func goesOn(b []byte) bool {
	ns, _ := timeInFront(b)
	return len(b) > 0 && ns == 0
}
