package record

import (
	"bufio"
	"errors"
	"io"
)

// rawLine is a line of text without its newline.
type rawLine struct {
	number int    // starting at 1
	text   []byte // valid until the next line is read
	long   bool   // longer than MaxLine; text is empty
	whole  bool   // terminated by a newline
	size   int64  // including the newline
}

// lineReader splits text into lines in bounded memory.
type lineReader struct {
	in     *bufio.Reader
	text   []byte
	number int
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(r, 64<<10)}
}

// next returns the next line, which may be blank. For an error other than io.EOF, it also returns
// the part of the line before the error.
func (l *lineReader) next() (rawLine, error) {
	line := rawLine{number: l.number + 1}
	l.text = l.text[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		line.size += int64(len(part))
		begun := len(part) > 0 || len(l.text) > 0 || line.long
		if begun {
			l.number = line.number
		}
		if err == nil {
			part, line.whole = part[:len(part)-1], true
		}
		if len(l.text)+len(part) > MaxLine {
			line.long = true
			l.text = l.text[:0]
		}
		if !line.long {
			l.text = append(l.text, part...)
			line.text = l.text
		} else {
			line.text = nil
		}
		switch {
		case err == nil, err == io.EOF && begun:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}
