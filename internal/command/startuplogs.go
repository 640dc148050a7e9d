package command

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/version"
	"github.com/tare-bench/tare/judge"
	"github.com/tare-bench/tare/plan"
	"github.com/tare-bench/tare/record"
	"github.com/tare-bench/tare/trace/logs"
	"github.com/tare-bench/tare/trace/notes"
	"github.com/tare-bench/tare/trace/starts"
)

// logFlags say which logs to read.
type logFlags struct {
	files   []string
	journal bool
	since   string
}

func (f *logFlags) add(set *pflag.FlagSet) {
	set.StringArrayVar(&f.files, "log", nil, "read this log instead of starting anything, - for standard input; gzip and zstd are unpacked; can be repeated")
	set.BoolVar(&f.journal, "journal", false, "read the system's journal (journalctl) instead of starting anything")
	set.StringVar(&f.since, "since", "", "of --journal: from then on, as journalctl takes it (default: this boot)")
}

func (f *logFlags) given() bool { return len(f.files) > 0 || f.journal }

// mostNotes is how long a file can be to be read as notes, too.
const mostNotes = 4 << 20

// mostNames is how many targets have their starts numbered.
const mostNames = 1000

// read puts starts together from logs and notes, keeps them in a record, and
// reports them. Memory does not grow with what is read.
func (f *logFlags) read(ctx context.Context, s Streams, set *pflag.FlagSet, p plan.Startup, out outputFlags) (err error) {
	if len(p.Commands) > 0 {
		return errors.New("--log and --journal read what was; leave the command out")
	}
	for _, name := range []string{"rounds", "warmup", "untraced", "trace", "limit", "timeout"} {
		if set.Changed(name) {
			return fmt.Errorf("--%s is about starts that are made; with --log and --journal none is", name)
		}
	}
	format, err := formatOf(out.format, "startup")
	if err != nil {
		return err
	}
	// Without --log in between, a shell's *.log gives the rest as arguments.
	f.files = append(f.files, p.Targets...)
	p.Targets = []string{}
	r, err := f.open(ctx)
	defer func() { err = errors.Join(err, r.close()) }()
	if err != nil {
		return err
	}
	rec, j, path, err := r.gather(ctx, s, p, out)
	if err != nil {
		return err
	}
	code, err := showStartup(s, format, rec, j, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "record: %s\n", path)
	if code != ExitDone {
		return exit{code}
	}
	return nil
}

// reading is what is read.
type reading struct {
	sources []logs.Source
	names   []string
	notes   []record.Start
	closers []io.Closer
	read    *counter
	bytes   int64 // of all files, 0 where one is a pipe
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
		if err := r.file(path); err != nil {
			return r, err
		}
	}
	if f.journal {
		return r, r.journal(ctx, f.since)
	}
	return r, nil
}

func (r *reading) file(path string) error {
	in, name, size := io.Reader(os.Stdin), "standard input", int64(0)
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("read logs: %w; give a file, or - for standard input", err)
		}
		r.closers = append(r.closers, file)
		info, err := file.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a folder; give the files in it", path)
		}
		if err != nil {
			return fmt.Errorf("read logs: %w", err)
		}
		in, name, size = file, filepath.Base(path), info.Size()
		r.bytes += size
	}
	in, err := unpacked(io.TeeReader(in, r.read), r)
	if err != nil {
		return fmt.Errorf("read logs: %s: %w", path, err)
	}
	// Only a text that is short enough for somebody to have written it is read
	// for figures, too.
	head, err := io.ReadAll(io.LimitReader(in, mostNotes+1))
	if err != nil {
		return fmt.Errorf("read logs: %s: %w", path, err)
	}
	if len(head) <= mostNotes {
		found, err := notes.Read(name, bytes.NewReader(head))
		if err != nil {
			return fmt.Errorf("read logs: %s: %w", path, err)
		}
		r.notes = append(r.notes, found...)
	}
	r.sources = append(r.sources, logs.Source{Name: name, Reader: io.MultiReader(bytes.NewReader(head), in)})
	r.names = append(r.names, name)
	return nil
}

// unpacked unpacks what begins like gzip or zstd.
func unpacked(in io.Reader, r *reading) (io.Reader, error) {
	begin := make([]byte, 4)
	n, err := io.ReadFull(in, begin)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	in = io.MultiReader(bytes.NewReader(begin[:n]), in)
	switch {
	case n >= 2 && begin[0] == 0x1f && begin[1] == 0x8b:
		return gzip.NewReader(in)
	case n == 4 && bytes.Equal(begin, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			return nil, err
		}
		r.closers = append(r.closers, d.IOReadCloser())
		return d, nil
	}
	return in, nil
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
	r.closers = append(r.closers, closeFunc(func() error {
		pipe.Close() // it ends when nobody reads
		if err := c.Wait(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("read the journal: journalctl: %w: %s", err, strings.TrimSpace(said.String()))
		}
		return nil
	}))
	r.sources = append(r.sources, logs.Source{Name: "journal", Reader: io.TeeReader(pipe, r.read), Journal: true})
	r.names = append(r.names, "journal")
	return nil
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

// gather reads everything, and writes the record of it as it is found.
func (r *reading) gather(ctx context.Context, s Streams, p plan.Startup, out outputFlags) (rec *record.Record, j *judge.Startup, path string, err error) {
	began := time.Now()
	text, err := json.Marshal(p)
	if err != nil {
		return nil, nil, "", fmt.Errorf("store the plan: %w", err)
	}
	// The environment stays empty: that of the starts is not known, and this
	// machine's has nothing to do with them.
	rec = &record.Record{Header: record.Header{Type: record.TypeHeader, Schema: record.Schema, RunID: importID(), Experiment: "startup", Started: began.UTC(),
		Command: append([]string{"tare"}, commandLine()...), Version: version.String(), Plan: text}}
	w, path, err := createRecord(out.record, "startup", rec.Header.RunID)
	if err != nil {
		return nil, nil, "", err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	judged, err := judge.NewStartups(&rec.Header, nil)
	if err != nil {
		return nil, nil, path, err
	}
	if err := w.Write(rec.Header); err != nil {
		return nil, nil, path, err
	}
	number, rounds := 0, map[string]int{}
	give := func(x *record.Start) error {
		number++
		if name := judge.NameOf(x); len(rounds) < mostNames || rounds[name] > 0 {
			x.Round = rounds[name]
			rounds[name]++
		}
		judged.Add(x)
		return w.Write(x)
	}
	if rec.Logs, err = r.logs(ctx, newProgress(s, out.quiet), began, give); err != nil {
		return nil, nil, path, err
	}
	for i := range r.notes {
		if err := give(&r.notes[i]); err != nil {
			return nil, nil, path, err
		}
	}
	if number == 0 {
		return nil, nil, path, r.nothing(rec.Logs)
	}
	rec.End = &record.End{Type: record.TypeEnd, Status: "done", Why: "read", Batches: number, Elapsed: int64(time.Since(began))}
	j = judged.Judge(rec)
	for _, f := range j.Findings {
		if err := w.Write(f); err != nil {
			return nil, nil, path, err
		}
	}
	return rec, j, path, errors.Join(w.Write(rec.Logs), w.Write(rec.End))
}

// logs reads the logs.
func (r *reading) logs(ctx context.Context, tell *progress, began time.Time, give func(*record.Start) error) (*record.Logs, error) {
	b := starts.New(starts.Options{Names: r.names}, give)
	count := 0
	stats, err := logs.Read(ctx, r.sources, func(e *logs.Event) error {
		if count++; count%4096 == 0 {
			elapsed := time.Since(began)
			left := time.Duration(0)
			if r.bytes > 0 && r.read.bytes > 0 {
				left = time.Duration(float64(elapsed) * max(float64(r.bytes)/float64(r.read.bytes)-1, 0))
			}
			tell.line(fmt.Sprintf("%d MiB read", r.read.bytes>>20), elapsed, left)
		}
		return b.Add(e)
	})
	if err == nil {
		err = b.Close()
	}
	tell.done()
	if err != nil {
		return nil, fmt.Errorf("read logs: %w", err)
	}
	l := &record.Logs{Type: record.TypeLogs, Files: r.names, Bytes: stats.Bytes, Lines: stats.Lines, Events: stats.Events, Forms: map[string]int64{},
		Cut: stats.Cut, Long: stats.Long, Unreadable: stats.Unreadable, Suppressed: stats.Suppressed, Backward: stats.Backward,
		Unplaced: b.Unplaced(), Dropped: b.Dropped()}
	for form, lines := range stats.Forms {
		l.Forms[form.String()] = lines
	}
	if stats.Unreadable > 0 && stats.FirstFile < len(r.names) {
		l.First = fmt.Sprintf("%s:%d", r.names[stats.FirstFile], stats.First)
	}
	return l, nil
}

// nothing says why there is nothing to report.
func (r *reading) nothing(l *record.Logs) error {
	return fmt.Errorf("no start of a container in %s: %d lines, %d of them of a known form; "+
		"give the logs of kata, containerd, cri-o, docker or runsc, at debug level where phases are wanted", strings.Join(r.names, ", "), l.Lines, l.Events)
}
