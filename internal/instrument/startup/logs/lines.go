package logs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is how many bytes of a line are looked at, 64 KiB. Of a longer one the
// first maxLine are read as a line that was cut there: what matters stands in
// front, and the rest costs no memory.
const maxLine = 64 << 10

// block is how much is read at once where the sources are few, 256 KiB.
const block = 256 << 10

// lines cuts a reader into lines in one buffer of a fixed size.
type lines struct {
	r       *bufio.Reader
	endless []byte // the beginning of a line that is longer than the buffer
	err     error
	bytes   int64 // that were given out
}

func linesOf(r io.Reader, size int) lines { return lines{r: bufio.NewReaderSize(r, size)} }

// first is what is there without waiting for more than a few bytes.
func (l *lines) first() []byte {
	_, _ = l.r.Peek(64)
	b, _ := l.r.Peek(l.r.Buffered())
	return b
}

// next returns the next line without its end, of a longer one the first maxLine
// bytes. It is valid until next is called again.
func (l *lines) next() (line []byte, long, ok bool) {
	if l.err != nil {
		return nil, false, false
	}
	line, l.err = l.r.ReadSlice('\n')
	l.bytes += int64(len(line))
	if errors.Is(l.err, bufio.ErrBufferFull) {
		l.endless = append(l.endless[:0], line[:maxLine]...)
		for errors.Is(l.err, bufio.ErrBufferFull) {
			line, l.err = l.r.ReadSlice('\n')
			l.bytes += int64(len(line))
		}
		return l.endless, true, true
	}
	ok = len(line) > 0
	if line = bytes.TrimSuffix(line, newline); len(line) > maxLine {
		return line[:maxLine], true, ok
	}
	return bytes.TrimSuffix(line, []byte("\r")), false, ok
}

// raw reads over n bytes of binary data and appends the first maxLine of them to
// dst.
func (l *lines) raw(dst []byte, n int64) []byte {
	b, _ := l.r.Peek(int(min(n, maxLine)))
	dst = append(dst, b...)
	over, _ := l.r.Discard(int(n))
	l.bytes += int64(over)
	return dst
}
