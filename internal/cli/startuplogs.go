package cli

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/internal/instrument/startup/starts"
	"github.com/tare-bench/tare/internal/version"
	"github.com/tare-bench/tare/record"
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

// given says whether logs are to be read. --since is only about them.
func (f *logFlags) given() bool { return len(f.files) > 0 || f.journal || f.since != "" }

// maxNames is how many targets have their starts numbered.
const maxNames = 1000

// read puts starts together from logs, keeps them in a record, and
// reports them. Memory does not grow with what is read.
func (f *logFlags) read(ctx context.Context, s *app, v *verb) (err error) {
	p, out := *v.options.(*startup.Options), v.out
	if v.Flags().Changed("since") && !f.journal {
		return errors.New("--since is about the journal: give --journal, too, or leave it out")
	}
	if len(p.Commands) > 0 {
		return errors.New("--log and --journal read what was; leave the command out")
	}
	for _, name := range v.set.GivenFlags() {
		return option.WrongFlag(name, "it is about starts that are made; with --log and --journal none is: leave it out")
	}
	if err := s.checkFormat(out.format, startup.Name); err != nil {
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
	return s.showKept(rec, j, path, out)
}

// gather reads everything, and writes the record of it as it is found.
func (r *reading) gather(ctx context.Context, s *app, p startup.Options, out outputFlags) (rec *record.Record, j *startup.Judgement, path string, err error) {
	began := time.Now()
	text, err := json.Marshal(p)
	if err != nil {
		return nil, nil, "", fmt.Errorf("store the plan: %w", err)
	}
	// The environment stays empty: that of the starts is not known, and this
	// machine's has nothing to do with them.
	rec = &record.Record{Header: record.Header{Type: record.TypeHeader, Schema: record.Schema, RunID: importID(), Experiment: startup.Name, Started: began.UTC(),
		Command: append([]string{"tare"}, commandLine()...), Version: version.String(), Plan: text}}
	w, path, err := s.createRecord(out.record, startup.Name, rec.Header.RunID)
	if err != nil {
		return nil, nil, "", err
	}
	number, rounds := 0, map[string]int{}
	defer func() {
		err = errors.Join(err, w.Close())
		if number == 0 { // a record of nothing would stand for a measurement
			err = errors.Join(err, os.Remove(path))
		}
	}()
	judged, err := startup.NewJudging(&rec.Header, nil)
	if err != nil {
		return nil, nil, path, err
	}
	if err := w.Write(rec.Header); err != nil {
		return nil, nil, path, err
	}
	give := func(x *record.Start) error {
		number++
		if name := startup.NameOf(x); len(rounds) < maxNames || rounds[name] > 0 {
			x.Round = rounds[name]
			rounds[name]++
		}
		judged.Add(x)
		return w.Write(x)
	}
	if rec.Logs, err = r.logs(ctx, newProgress(s, out.quiet), began, give); err != nil {
		return nil, nil, path, err
	}
	if number == 0 {
		return nil, nil, path, r.nothing(rec.Logs)
	}
	rec.End = &record.End{Type: record.TypeEnd, Status: "done", Why: "read", Batches: number, Elapsed: int64(time.Since(began))}
	j = judged.Done(rec)
	for _, f := range j.Found {
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
			if r.bytes > 0 && r.read.bytes > 0 && !r.endless {
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
	l := &record.Logs{Type: record.TypeLogs, Files: r.files, Bytes: stats.Bytes, Lines: stats.Lines, Events: stats.Events, Forms: map[string]int64{},
		Cut: stats.Cut, Long: stats.Long, Unreadable: stats.Unreadable, Suppressed: stats.Suppressed, Backward: stats.Backward,
		Unplaced: b.Unplaced(), Dropped: b.Dropped(),
		Missing: append(r.missing, r.broken(stats.Broken)...)}
	for form, lines := range stats.Forms {
		l.Forms[form.String()] = lines
	}
	if stats.Unreadable > 0 && stats.FirstFile < len(r.names) {
		l.First = fmt.Sprintf("%s:%d", r.names[stats.FirstFile], stats.First)
	}
	return l, nil
}

// broken is what could not be read to its end.
func (r *reading) broken(all []logs.Broken) (out []record.Missing) {
	for _, b := range all {
		what := "not read to the end"
		for _, cut := range []error{io.ErrUnexpectedEOF, gzip.ErrChecksum, zstd.ErrCRCMismatch} {
			if errors.Is(b.Err, cut) {
				what = "ends in the middle"
			}
		}
		why := b.Err.Error()
		if cause := errors.Unwrap(b.Err); cause != nil {
			why = cause.Error()
		}
		out = append(out, record.Missing{What: what, Count: 1, Detail: fmt.Sprintf("%s, after %d lines: %.1000s", r.names[b.File], b.Lines, why)})
	}
	return out
}

// nothing says why there is nothing to report.
func (r *reading) nothing(l *record.Logs) error {
	why := ""
	for i, m := range l.Missing {
		if i == 3 {
			why += fmt.Sprintf("; and %d more", len(l.Missing)-i)
			break
		}
		why += fmt.Sprintf("; %s: %s", m.What, m.Detail)
	}
	named := r.files
	if len(named) > 5 {
		named = append(slices.Clone(named[:5]), fmt.Sprintf("%d more", len(r.files)-5))
	}
	return fmt.Errorf("no start of a container in %s: %d lines, %d of them of a known form%s; "+
		"give the logs of kata, containerd, cri-o, docker or runsc, at debug level where phases are wanted", strings.Join(named, ", "), l.Lines, l.Events, why)
}
