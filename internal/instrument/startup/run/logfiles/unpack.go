package logfiles

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
)

// late is a log that is opened and decompressed at its first read and closed at its
// end. This limits the number of open files.
type late struct {
	open   func() (io.ReadCloser, error)
	count  io.Writer // counts the compressed bytes read
	in     io.Reader
	closer []func()
	err    error
}

func (l *late) Read(b []byte) (int, error) {
	if l.in == nil && l.err == nil {
		l.err = l.begin()
	}
	if l.err != nil {
		return 0, l.err
	}
	n, err := l.in.Read(b)
	if err != nil {
		l.err = err
		l.Close() //nolint:errcheck // it returns no error
	}
	return n, err
}

// begin opens the log and detects its compression from the first bytes.
func (l *late) begin() error {
	file, err := l.open()
	if err != nil {
		return err
	}
	l.closer = append(l.closer, func() { file.Close() }) // the file was only read
	counted := io.TeeReader(file, l.count)
	var magic [4]byte
	n, err := io.ReadFull(counted, magic[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	in := io.MultiReader(bytes.NewReader(magic[:n]), counted)
	switch packing(magic[:n]) {
	case gzipped:
		l.in, err = gzip.NewReader(in)
	case zstandard:
		var unpacked *zstd.Decoder
		if unpacked, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(64<<20)); err == nil {
			l.in = unpacked
			l.closer = append(l.closer, unpacked.Close)
		}
	case bzipped:
		l.in, err = bzip2.NewReader(in), nil
	case xzipped:
		l.in, err = xz.NewReader(in, 64<<20)
	default:
		l.in, err = in, nil
	}
	return err
}

func (l *late) Close() error {
	for _, c := range l.closer {
		c()
	}
	l.closer = nil
	return nil
}

// The compression formats, by magic number.
const (
	plain     = ""
	gzipped   = "\x1f\x8b"
	zstandard = "\x28\xb5\x2f\xfd"
	bzipped   = "BZh"
	xzipped   = "\xfd7zX"
)

// packing returns the compression of a file that begins with the given bytes.
func packing(begin []byte) string {
	for _, p := range []string{gzipped, zstandard, bzipped, xzipped} {
		if bytes.HasPrefix(begin, []byte(p)) {
			return p
		}
	}
	return plain
}

type readCloser struct {
	io.Reader
	io.Closer
}

// limited keeps the first bytes written and discards the rest.
type limited struct {
	to   *bytes.Buffer
	room int
}

func (l *limited) Write(p []byte) (int, error) {
	l.to.Write(p[:min(len(p), l.room)])
	l.room -= min(len(p), l.room)
	return len(p), nil
}

// counter counts bytes.
type counter struct{ bytes int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}
