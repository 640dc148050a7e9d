package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrTooLong is wrapped when a record has more text than its reader was told to take.
var ErrTooLong = errors.New("the record is too long to be read here")

// AtMost has the reader end with an error behind so many bytes of text. A file says how
// long it is; what it unpacks to can be a thousand times that. It is told before the
// first line is read.
func (r *Reader) AtMost(bytes int64) { r.most = bytes }

// Skim returns the next line as it stands there, and its type, without reading the rest
// of it; io.EOF comes behind the last that is whole. A line that has no type has "".
// Whoever wants to know what it says gives it to [Lines.Decode]. The text is valid until
// the next call. Nothing is asked about the order of lines, so that a reader may begin in
// the midst of a record.
func (r *Reader) Skim() (word Type, text []byte, err error) {
	raw, err := r.read()
	switch {
	case r.source.err != nil:
		return "", nil, fmt.Errorf("read %s: %w", r.name, r.source.err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), err == nil && !raw.whole:
		return "", nil, io.EOF
	case err != nil:
		return "", nil, fmt.Errorf("read %s: %w", r.name, err)
	}
	r.skimmed += raw.size
	word, err = lineType(raw.text)
	if err != nil {
		word = ""
	}
	return word, raw.text, nil
}

// Skimmed is how many bytes of text the lines have that Skim returned.
func (r *Reader) Skimmed() int64 { return r.skimmed }

// Packed says, once a line was read, that what is read is compressed.
func (r *Reader) Packed() bool { return r.decoder != nil }

// Decode returns the line that text is, a pointer to the struct of its type, if what it
// says can be true; nil if its type is not known.
func (l *Lines) Decode(text []byte) (any, error) {
	text = bytes.TrimSpace(text)
	word, err := lineType(text)
	if err != nil || l.byWord[word] == nil {
		return nil, err
	}
	return l.byWord[word].decode(text)
}

// bounded ends with an error of the source behind so many bytes.
type bounded struct {
	in     io.Reader
	left   int64
	source *source
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.source.err = ErrTooLong
		return 0, ErrTooLong
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
