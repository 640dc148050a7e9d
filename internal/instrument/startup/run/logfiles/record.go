package logfiles

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/internal/instrument/startup/starts"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/record"
)

// maxNames is the maximum number of targets with numbered starts.
const maxNames = 1000

// Writer writes lines of the record and reports progress.
type Writer struct {
	Write    func(line any) error
	Progress func(what string, elapsed, left time.Duration)
}

// Record assembles the starts in all logs under a header. It writes each start when it
// is complete, and judges all of them. Without a start, it returns an error with
// the reason and no judgement.
func (r *Reading) Record(ctx context.Context, header record.Header, w Writer) (*record.Record, *startup.Judgement, error) {
	began := time.Now()
	header.Type, header.Schema = record.TypeHeader, record.Schema
	rec := &record.Record{Header: header}
	judged, err := startup.NewJudging(&rec.Header, nil)
	if err != nil {
		return nil, nil, err
	}
	if err := w.Write(rec.Header); err != nil {
		return nil, nil, err
	}
	number, rounds := 0, map[string]int{}
	give := func(x *record.Start, file int) error {
		number++
		r.doubt(x, file)
		if name := startup.NameOf(x); len(rounds) < maxNames || rounds[name] > 0 {
			x.Round = rounds[name]
			rounds[name]++
		}
		judged.Add(x)
		return w.Write(x)
	}
	rec.Logs, err = r.logs(ctx, w, began, give)
	switch {
	case err != nil && number == 0:
		return nil, nil, err
	case err != nil:
		return rec, nil, err
	case number == 0:
		return nil, nil, r.nothing(rec.Logs)
	}
	rec.End = &record.End{Type: record.TypeEnd, Status: "done", Why: "read", Batches: number, Elapsed: int64(time.Since(began))}
	j := judged.Done(rec)
	for _, f := range j.Found {
		if err := w.Write(f); err != nil {
			return rec, nil, err
		}
	}
	return rec, j, errors.Join(w.Write(rec.Logs), w.Write(rec.End))
}

// Of returns the starts in the logs that match a watched start, and statistics of the
// logs. Other starts are ignored.
func (r *Reading) Of(ctx context.Context, watched []record.Start, tell func(what string, elapsed, left time.Duration)) (found []record.Start, read *record.Logs, err error) {
	read, err = r.logs(ctx, Writer{Progress: tell}, time.Now(), func(x *record.Start, file int) error {
		r.doubt(x, file)
		if slices.ContainsFunc(watched, func(s record.Start) bool { return trace.Common(&s, x) > 0 }) {
			found = append(found, *x)
		}
		return nil
	})
	return found, read, err
}

// logs reads the logs and calls give for each start.
func (r *Reading) logs(ctx context.Context, w Writer, began time.Time, give func(x *record.Start, file int) error) (*record.Logs, error) {
	b := starts.New(r.files, give)
	count := 0
	stats, err := logs.Read(ctx, r.sources, func(e *logs.Event) error {
		r.orders[e.File].see(e)
		if count++; count%4096 == 0 {
			elapsed := time.Since(began)
			left := time.Duration(0)
			if r.bytes > 0 && r.read.bytes > 0 && !r.endless {
				left = time.Duration(float64(elapsed) * max(float64(r.bytes)/float64(r.read.bytes)-1, 0))
			}
			w.Progress(fmt.Sprintf("%d MiB read", r.read.bytes>>20), elapsed, left)
		}
		return b.Add(e)
	})
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("read logs: %w", err)
	}
	for i, o := range r.orders {
		if o != nil && !o.isKnown && (o.jumps > 0 || o.isMixed()) {
			r.left(r.files[i])
		}
	}
	l := &stats.Logs
	l.Files, l.Unplaced, l.Dropped = r.files, b.Unplaced, b.Dropped
	l.Missing = append(r.missing, r.broken(stats.Broken)...)
	if stats.AtWidth > 2 && 2*stats.AtWidth > stats.Lines {
		r.cutAt = stats.Width
	}
	if n := stats.Coarse + stats.Whole; 2*n > stats.Read || stats.Coarse > 0 {
		l.Missing = append(l.Missing, record.Missing{What: "whole seconds", Count: n, Detail: fmt.Sprintf("%d of %d lines have no fraction: each duration is known to ±1 s", n, stats.Lines)})
	}
	return l, nil
}

// broken returns the logs that were not read to their end, as missing evidence.
func (r *Reading) broken(all []logs.Broken) (out []record.Missing) {
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
		out = append(out, record.Missing{What: what, Count: 1, Detail: fmt.Sprintf("%s, after %d lines: %.1000s", r.files[b.File], b.Lines, why)})
	}
	return out
}

const takeWhole = "collect them again with whole lines (use journalctl -o cat)"

// nothing returns an error with the reason why the logs have no start.
func (r *Reading) nothing(l *record.Logs) error {
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
	forms := strings.Join(slices.Sorted(maps.Keys(l.Forms)), ", ")
	cause := "their lines are of " + forms + ", and none is about a start: use logs from the time of the start, at debug level"
	switch {
	case l.Events == 0:
		cause = "no line has a known form: use the logs of containerd, cri-o, docker, podman, isulad, kubelet, kata, runsc or crun"
	case 2*l.Cut > l.Events:
		cause = "most lines are truncated, so their sandboxes are unknown: " + takeWhole
	case r.cutAt > 0:
		cause = fmt.Sprintf("most lines end at %d characters, so they may be truncated, and none is about a start: %s", r.cutAt, takeWhole)
	}
	return fmt.Errorf("no container start in %s: %d lines, %d of a known form%s; %s", strings.Join(named, ", "), l.Lines, l.Events, why, cause)
}
