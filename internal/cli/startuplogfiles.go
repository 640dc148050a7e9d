package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

const (
	// maxPieces is how many logs may have been put into one file.
	maxPieces = 64
	// maxSources is how many logs are read at once: each costs a block of memory
	// and an open file.
	maxSources = 1000
)

// reading is what is read.
type reading struct {
	sources []logs.Source
	names   []string // of sources
	files   []string // of which several sources may be
	known   []os.FileInfo
	missing []record.Missing
	closers []io.Closer
	read    *counter
	bytes   int64 // of all files
	endless bool  // one is a pipe
}

func (r *reading) close() error {
	var errs []error
	for _, c := range r.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func (f *logFlags) open(ctx context.Context) (*reading, error) {
	r := &reading{read: &counter{}}
	for _, path := range f.files {
		if err := r.file(ctx, path); err != nil {
			return r, err
		}
	}
	if f.journal {
		return r, r.journal(ctx, f.since)
	}
	return r, nil
}

// file adds a file. It is opened when it is read, and closed at its end.
func (r *reading) file(ctx context.Context, path string) error {
	name := filepath.Base(path)
	open := func() (*os.File, error) { return os.Open(path) }
	stat := func() (os.FileInfo, error) { return os.Stat(path) }
	if path == "-" {
		in := os.Stdin
		name, stat = "standard input", in.Stat
		open = func() (*os.File, error) { return in, nil }
	}
	info, err := stat()
	if err != nil {
		return fmt.Errorf("read logs: %w; give a file, or - for standard input", err)
	}
	if info.IsDir() {
		return fmt.Errorf("read logs: %s is a folder; give the files in it", path)
	}
	for i, other := range r.known {
		if os.SameFile(info, other) {
			return fmt.Errorf("read logs: %s is the same file as %s; give it once", path, r.files[i])
		}
	}
	r.known, r.files = append(r.known, info), append(r.files, name)
	if !info.Mode().IsRegular() {
		r.endless = true
		return r.add(logs.Source{Name: name, Reader: r.unpacked(waited(ctx, open, path != "-"))})
	}
	from, err := r.regular(ctx, name, open)
	if err != nil {
		return fmt.Errorf("read logs: %s: %w", path, err)
	}
	for _, s := range from {
		if err := r.add(s); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) add(s logs.Source) error {
	if len(r.sources) == maxSources {
		return fmt.Errorf("read logs: more than %d logs; read fewer at once", maxSources)
	}
	r.sources, r.names = append(r.sources, s), append(r.names, s.Name)
	return nil
}

// regular looks into a file for where one log ends and another begins.
func (r *reading) regular(ctx context.Context, name string, open func() (*os.File, error)) ([]logs.Source, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	closeIt := func() error {
		if f == os.Stdin {
			return nil
		}
		return f.Close()
	}
	defer closeIt() //nolint:errcheck // nothing was written
	begin, size := int64(0), int64(0)
	if f == os.Stdin {
		begin, err = f.Seek(0, io.SeekCurrent)
	}
	info, also := f.Stat()
	if err = errors.Join(err, also); err != nil {
		return nil, err
	}
	size = max(info.Size()-begin, 0)
	r.bytes += size
	var magic [4]byte
	n, _ := f.ReadAt(magic[:], begin)
	pieces := []logs.Segment{{To: size}}
	if kindOf(magic[:n]) == plain {
		var ordered bool
		pieces, ordered, err = logs.Segments(stoppable{ctx, io.NewSectionReader(f, begin, size)}, maxPieces)
		if err != nil {
			return nil, err
		}
		if !ordered {
			r.missing = append(r.missing, record.Missing{What: "disorder", Count: 1, Detail: fmt.Sprintf("in %s time goes back at more than %d places", name, maxPieces-1)})
		}
	}
	var all []logs.Source
	for _, p := range pieces {
		in := &late{open: func() (io.Reader, io.Closer, error) {
			f, err := open()
			if err != nil || f == os.Stdin {
				return io.NewSectionReader(f, begin+p.From, p.To-p.From), nil, err
			}
			return io.NewSectionReader(f, begin+p.From, p.To-p.From), f, nil
		}}
		r.closers = append(r.closers, in)
		all = append(all, logs.Source{Name: name, Reader: r.unpacked(in), Line: p.Line})
	}
	return all, nil
}

// late is a file that is opened when it is read, and closed at its end.
type late struct {
	open   func() (io.Reader, io.Closer, error)
	in     io.Reader
	closer io.Closer
	err    error
}

func (l *late) Read(b []byte) (int, error) {
	if l.in == nil && l.err == nil {
		l.in, l.closer, l.err = l.open()
	}
	if l.err != nil {
		return 0, l.err
	}
	n, err := l.in.Read(b)
	if err != nil {
		l.err = errors.Join(l.Close(), err)
		if errors.Is(err, io.EOF) {
			l.err = err
		}
	}
	return n, err
}

func (l *late) Close() error {
	c := l.closer
	l.closer = nil
	if c == nil {
		return nil
	}
	return c.Close()
}

// waited reads what may be silent for long, as a pipe or a terminal: what waits for
// it ends with ctx. It is read from elsewhere, since a read cannot be called off;
// opening a FIFO waits for who writes into it, too.
func waited(ctx context.Context, open func() (*os.File, error), ours bool) io.Reader {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { out.CloseWithError(ctx.Err()) })
	go func() {
		f, err := open()
		if err == nil {
			if ours {
				stop := context.AfterFunc(ctx, func() { f.Close() })
				defer stop()
				defer f.Close()
			}
			_, err = io.Copy(in, struct{ io.Reader }{f})
		}
		in.CloseWithError(err)
	}()
	return out
}

// unpacked unpacks what begins like gzip or zstd, and counts what it reads.
func (r *reading) unpacked(in io.Reader) io.Reader {
	u := &unpacker{in: io.TeeReader(in, r.read)}
	r.closers = append(r.closers, u)
	return u
}

// unpacker looks at the first bytes when it is first read.
type unpacker struct {
	in   io.Reader
	out  io.Reader
	zstd *zstd.Decoder
}

func (u *unpacker) Read(b []byte) (int, error) {
	if u.out == nil {
		if err := u.begin(); err != nil {
			return 0, err
		}
	}
	return u.out.Read(b)
}

func (u *unpacker) Close() error {
	if u.zstd != nil {
		u.zstd.Close()
		u.zstd = nil
	}
	return nil
}

func (u *unpacker) begin() error {
	var magic [4]byte
	n, err := io.ReadFull(u.in, magic[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	in := io.MultiReader(bytes.NewReader(magic[:n]), u.in)
	switch kindOf(magic[:n]) {
	case gzipped:
		u.out, err = gzip.NewReader(in)
	case zstandard:
		u.zstd, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(64<<20))
		u.out = u.zstd
	default:
		u.out, err = in, nil
	}
	if err != nil {
		u.out = nil
	}
	return err
}

type packing int

const (
	plain packing = iota
	gzipped
	zstandard
)

// kindOf tells from its first bytes how a file is packed.
func kindOf(begin []byte) packing {
	switch {
	case bytes.HasPrefix(begin, []byte{0x1f, 0x8b}):
		return gzipped
	case bytes.HasPrefix(begin, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return zstandard
	}
	return plain
}

// stoppable is a reader that ends with its context.
type stoppable struct {
	ctx context.Context
	io.Reader
}

func (s stoppable) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(b)
}

// journal asks journalctl for what engines and runtimes wrote.
func (r *reading) journal(ctx context.Context, since string) error {
	args := []string{"--no-pager", "--quiet", "--output=json"}
	if since == "" {
		args = append(args, "--boot")
	} else {
		args = append(args, "--since="+since)
	}
	for _, identifier := range []string{"kata", "kata-runtime", "kata-proxy", "kata-shim", "containerd", "crio", "cri-o", "dockerd", "isulad", "systemd-journald"} {
		args = append(args, "--identifier="+identifier)
	}
	path, err := exec.LookPath("journalctl")
	if err != nil {
		return fmt.Errorf("read the journal: %w; give the logs as files with --log", err)
	}
	c := exec.CommandContext(ctx, path, args...)
	var said bytes.Buffer
	c.Stderr = &limited{&said, 4 << 10}
	pipe, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	// What journalctl started itself may hold the pipe open when it has ended.
	stop := context.AfterFunc(ctx, func() { pipe.Close() })
	r.closers = append(r.closers, closeFunc(func() error {
		stop()
		pipe.Close() // it ends when nobody reads
		if err := c.Wait(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("read the journal: journalctl: %w: %s", err, strings.TrimSpace(said.String()))
		}
		return nil
	}))
	r.endless = true
	r.files = append(r.files, "journal")
	return r.add(logs.Source{Name: "journal", Reader: io.TeeReader(pipe, r.read), Journal: true})
}

type closeFunc func() error

func (f closeFunc) Close() error { return f() }

// limited keeps the first bytes and takes the rest.
type limited struct {
	to   *bytes.Buffer
	room int
}

func (l *limited) Write(p []byte) (int, error) {
	l.to.Write(p[:min(len(p), l.room)])
	l.room -= min(len(p), l.room)
	return len(p), nil
}

// counter counts what is read.
type counter struct{ bytes int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}
