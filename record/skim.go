package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrTooLong is wrapped in the error for a record with more text than AtMost allows.
var ErrTooLong = errors.New("the record is too long to be read here")

// AtMost limits the size of the text after decompression, in bytes. The text can be a thousand
// times as large as the file. Call AtMost before reading the first line.
func (r *Reader) AtMost(bytes int64) { r.most = bytes }

// Skim returns the text of the next line and its type, or "" if it has no type. It does not
// decode the line; see [Lines.Decode]. It returns io.EOF after the last complete line. The text is
// valid until the next call. Skim does not check the order of lines, so reading may begin in the
// middle of a record.
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

// Skimmed returns the total size of all lines that Skim returned, in bytes.
func (r *Reader) Skimmed() int64 { return r.skimmed }

// Packed reports whether the input is compressed. Call it after reading the first line.
func (r *Reader) Packed() bool { return r.decoder != nil }

// Decode returns a pointer to the struct for the line's type, after checking its values. It
// returns nil for an unknown type.
func (l *Lines) Decode(text []byte) (any, error) {
	text = bytes.TrimSpace(text)
	word, err := lineType(text)
	if err != nil || l.byWord[word] == nil {
		return nil, err
	}
	return l.byWord[word].decode(text)
}

// bounded fails with ErrTooLong after the given number of bytes.
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
