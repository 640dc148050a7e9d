package logs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is the maximum length of a line, 64 KiB. A longer line is truncated, which
// bounds memory. The relevant fields are at its beginning.
const maxLine = 64 << 10

// block is the read size if there are few sources, 256 KiB.
const block = 256 << 10

// lines splits a reader into lines, with one buffer of a fixed size.
type lines struct {
	r       *bufio.Reader
	endless []byte // the beginning of a line longer than the buffer
	err     error
	bytes   int64 // bytes read
}

func linesOf(r io.Reader, size int) lines { return lines{r: bufio.NewReaderSize(r, size)} }

// first returns the first block, as far as it is available without waiting. It waits
// for at most 64 bytes.
func (l *lines) first() []byte {
	_, _ = l.r.Peek(64)
	b, _ := l.r.Peek(l.r.Buffered())
	return b
}

// next returns the next line without its line end, truncated to maxLine bytes. The
// line is valid until the next call.
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

// raw consumes n bytes of binary data and appends the first maxLine of them to dst.
func (l *lines) raw(dst []byte, n int64) []byte {
	b, _ := l.r.Peek(int(min(n, maxLine)))
	dst = append(dst, b...)
	over, _ := l.r.Discard(int(n))
	l.bytes += int64(over)
	return dst
}
