package logs

import (
	"bytes"
	"io"
)

// MaxLine is how many bytes of a line are looked at, 64 KiB. Of a longer one the
// first MaxLine are read as a line that was cut there: what matters stands in
// front, and the rest costs no memory.
const MaxLine = 64 << 10

// block is how much is read at once where the sources are few, 256 KiB.
const block = 256 << 10

// lines cuts a reader into lines in one buffer of a fixed size.
type lines struct {
	r        io.Reader
	buf      []byte
	from, to int // what is read and not yet given out
	err      error
	bytes    int64
}

// fill reads once behind what is there; it moves that to the front of the buffer
// where the room ends. It says how far it was moved.
func (l *lines) fill() (moved int) {
	if l.to == len(l.buf) || l.from == l.to {
		moved = l.from
		copy(l.buf, l.buf[l.from:l.to])
		l.from, l.to = 0, l.to-moved
	}
	for range 100 {
		n, err := l.r.Read(l.buf[l.to:])
		l.to += n
		l.bytes += int64(n)
		if err != nil {
			l.err = err
			return moved
		}
		if n > 0 {
			return moved
		}
	}
	l.err = io.ErrNoProgress
	return moved
}

// next returns the next line without its end, of a longer one the first MaxLine
// bytes. It is valid until next is called again.
func (l *lines) next() (line []byte, long, ok bool) {
	for at := l.from; ; {
		if i := bytes.IndexByte(l.buf[at:l.to], '\n'); i >= 0 {
			line = l.buf[l.from : at+i]
			l.from = at + i + 1
			return clip(line)
		}
		at = l.to
		switch {
		case l.to-l.from > MaxLine:
			return l.endless(), true, true
		case l.err != nil:
			line = l.buf[l.from:l.to]
			l.from = l.to
			line, long, _ = clip(line)
			return line, long, len(line) > 0
		}
		at -= l.fill()
	}
}

func clip(line []byte) ([]byte, bool, bool) {
	if len(line) > MaxLine {
		return line[:MaxLine], true, true
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, false, true
}

// endless keeps the first MaxLine bytes of a line and reads over the others.
func (l *lines) endless() []byte {
	copy(l.buf, l.buf[l.from:l.from+MaxLine])
	for l.err == nil {
		l.from, l.to = MaxLine, MaxLine
		n, err := l.r.Read(l.buf[MaxLine:])
		l.to += n
		l.bytes += int64(n)
		l.err = err
		if i := bytes.IndexByte(l.buf[MaxLine:l.to], '\n'); i >= 0 {
			l.from += i + 1
			return l.buf[:MaxLine]
		}
	}
	l.from = l.to
	return l.buf[:MaxLine]
}

// raw reads over n bytes of binary data and appends the first MaxLine of them to
// dst.
func (l *lines) raw(dst []byte, n int64) []byte {
	keep := int64(MaxLine)
	for n > 0 {
		if l.from == l.to {
			if l.err != nil {
				return dst
			}
			l.from, l.to = 0, 0
			l.fill()
			continue
		}
		have := min(n, int64(l.to-l.from))
		some := min(have, keep)
		dst = append(dst, l.buf[l.from:l.from+int(some)]...)
		keep -= some
		n -= have
		l.from += int(have)
	}
	return dst
}
