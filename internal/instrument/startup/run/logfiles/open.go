// Package logfiles makes a record of the starts in logs. It opens the logs of engines
// and runtimes in any location and compression, and assembles the events found by
// package logs. Memory does not grow with the input.
package logfiles

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// maxSources is the maximum number of logs read at once. Each costs a block of memory
// and an open file.
const maxSources = 1000

// Logs selects the logs to read.
type Logs struct {
	Files   []string // "-" is standard input
	Journal bool
	Since   string         // start of the journal, in journalctl's syntax; "": this boot
	Sorts   bool           // sort lines even if their disorder comes from a program's threads
	Zone    *time.Location // for times without a zone; nil is UTC
	// marked are the files at the beginning of a run; their earlier content is skipped.
	marked []os.FileInfo
}

// Mark records the current end of the logs, so that reading starts there.
func (l Logs) Mark() (Logs, error) {
	l.Since = fmt.Sprintf("@%d", time.Now().Unix())
	for _, path := range l.Files {
		if path == "-" {
			return l, errors.New("standard input cannot be read during a run: use --log FILE or --journal")
		}
		files, err := filesOf(path)
		if err != nil {
			return l, err
		}
		for _, file := range files {
			info, err := os.Stat(file)
			switch {
			case err != nil:
				return l, fmt.Errorf("read logs: %w", err)
			case !info.Mode().IsRegular():
				return l, fmt.Errorf("read logs: %s is not a regular file; with a target, use the log file itself", file)
			}
			l.marked = append(l.marked, info)
		}
	}
	return l, nil
}

// from returns the offset from which a file is read. A file that shrank is read from
// the beginning.
func (l *Logs) from(info os.FileInfo) int64 {
	for _, was := range l.marked {
		if os.SameFile(was, info) && was.Size() <= info.Size() {
			return was.Size()
		}
	}
	return 0
}

// Reading is a set of open logs.
type Reading struct {
	sources []logs.Source
	orders  []*order // sort orders of their lines
	files   []string // their names
	known   []os.FileInfo
	missing []record.Missing
	closers []func() error
	read    counter
	ordered struct{ bytes, lines int64 } // totals of the sorted logs
	bytes   int64                        // of all files
	endless bool                         // a source is a pipe
	zone    *time.Location
	sorts   bool // sort all lines out of order
	cutAt   int  // maximum line length, in bytes, if most lines have it; 0: none
}

// Open opens all logs.
func Open(ctx context.Context, l Logs) (*Reading, error) {
	r := &Reading{sorts: l.Sorts, zone: l.Zone}
	if err := r.open(ctx, l); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Reading) open(ctx context.Context, l Logs) error {
	for _, path := range l.Files {
		files, err := filesOf(path)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := r.file(ctx, file, &l); err != nil {
				return err
			}
		}
	}
	if l.Journal {
		return r.journal(ctx, l.Since)
	}
	return nil
}

// Close closes all logs.
func (r *Reading) Close() error {
	var errs []error
	for _, end := range r.closers {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// filesOf returns the files for a path. For a folder these are its files, since runsc
// writes one file per command. For a pattern that is not a file name these are the
// matching files.
func filesOf(path string) (files []string, err error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		within, err := os.ReadDir(path)
		if err != nil {
			return nil, fmt.Errorf("read logs: %w", err)
		}
		for _, f := range within {
			if f.Type().IsRegular() {
				files = append(files, filepath.Join(path, f.Name()))
			}
		}
		if files == nil {
			return nil, fmt.Errorf("read logs: no file in %s", path)
		}
		return files, nil
	} else if err == nil || path == "-" {
		return []string{path}, nil
	}
	if files, err = filepath.Glob(path); err != nil || files == nil {
		return []string{path}, nil // opening it will report that it does not exist
	}
	return files, nil
}

// file adds a file. It is opened when it is read, and closed at its end.
func (r *Reading) file(ctx context.Context, path string, l *Logs) error {
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
	for i, other := range r.known {
		if os.SameFile(info, other) {
			return fmt.Errorf("read logs: %s is the same file as %s; give it once", path, r.files[i])
		}
	}
	r.known = append(r.known, info)
	if !info.Mode().IsRegular() {
		r.endless = true
		in := waited(ctx, open, path != "-")
		return r.add(logs.Source{Name: name}, nil, func() (io.ReadCloser, error) { return io.NopCloser(in), nil })
	}
	if err := r.regular(ctx, name, open, l.from(info)); err != nil {
		return fmt.Errorf("read logs: %s: %w", path, err)
	}
	return nil
}

// add adds a log that is opened when it is first read.
func (r *Reading) add(s logs.Source, o *order, open func() (io.ReadCloser, error)) error {
	if len(r.sources) == maxSources {
		return fmt.Errorf("more than %d logs; read fewer at once", maxSources)
	}
	in := &late{open: open, count: &r.read}
	s.Reader, s.Zone = in, r.zone
	r.closers = append(r.closers, in.Close)
	r.sources, r.orders, r.files = append(r.sources, s), append(r.orders, o), append(r.files, s.Name)
	return nil
}

// regular adds a regular file, from an offset. It sorts the lines of small files if
// necessary.
func (r *Reading) regular(ctx context.Context, name string, open func() (*os.File, error), from int64) error {
	f, err := open()
	if err != nil {
		return err
	}
	ours := f != os.Stdin
	begin, before := int64(0), int64(0)
	if ours {
		defer f.Close() // the file was only read
		begin, before, err = lines(logs.Until(ctx, io.NewSectionReader(f, 0, from)))
		if err != nil {
			return err
		}
	} else if begin, err = f.Seek(0, io.SeekCurrent); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := max(info.Size()-begin, 0)
	r.bytes += size
	var magic [4]byte
	n, _ := f.ReadAt(magic[:], begin)
	s, o := logs.Source{Name: name, Line: before, Date: info.ModTime(), Zone: r.zone}, (*order)(nil)
	switch isPlain := packing(magic[:n]) == plain; {
	case isPlain && size > maxMended:
		o = &order{}
	case isPlain:
		text := make([]byte, size)
		if _, err := f.ReadAt(text, begin); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if o, text, s.Lines, err = r.inOrder(ctx, s, text); err != nil {
			return err
		}
		if s.Lines != nil {
			return r.add(s, o, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil })
		}
	}
	return r.add(s, o, func() (io.ReadCloser, error) {
		f, err := open()
		if err != nil {
			return nil, err
		}
		rest := io.NewSectionReader(f, begin, size)
		if !ours {
			return io.NopCloser(rest), nil
		}
		return readCloser{rest, f}, nil
	})
}

// lines returns the number of whole lines of a text and their total size.
func lines(text io.Reader) (size, n int64, err error) {
	in := bufio.NewReaderSize(text, 64<<10)
	for read := int64(0); ; {
		line, err := in.ReadSlice('\n')
		read += int64(len(line))
		switch {
		case err == nil:
			size, n = read, n+1
		case errors.Is(err, io.EOF):
			return size, n, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return 0, 0, err
		}
	}
}

// miss records missing evidence.
func (r *Reading) miss(what, format string, arguments ...any) {
	r.missing = append(r.missing, record.Missing{What: what, Count: 1, Detail: fmt.Sprintf(format, arguments...)})
}

// waited returns a reader for a pipe, FIFO or terminal, which may block for long. It
// returns when ctx is done. A goroutine does the reading, since a read cannot be
// canceled and opening a FIFO blocks until it has a writer.
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

// journal adds the output of journalctl for engines and runtimes.
func (r *Reading) journal(ctx context.Context, since string) error {
	from := "--boot"
	if since != "" {
		from = "--since=" + since
	}
	args := []string{"--no-pager", "--quiet", "--output=json", from}
	for _, identifier := range []string{"kata", "kata-runtime", "kata-proxy", "kata-shim", "containerd", "crio", "cri-o", "dockerd", "isulad", "kubelet", "systemd-journald"} {
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
	// A child of journalctl may keep the pipe open after journalctl ended.
	stop := context.AfterFunc(ctx, func() { pipe.Close() })
	r.closers = append(r.closers, func() error {
		stop()
		pipe.Close() // journalctl ends when its output has no reader
		if err := c.Wait(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("read the journal: journalctl: %w: %s", err, strings.TrimSpace(said.String()))
		}
		return nil
	})
	r.endless = true
	return r.add(logs.Source{Name: "journal", Journal: true}, nil, func() (io.ReadCloser, error) { return io.NopCloser(pipe), nil })
}
