package cli

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// ofFile is a file of records, with the data that is kept of each record.
type ofFile[T any] struct {
	path  string
	named bool // named by the user, not found in a folder
	kept  []T
	err   error // errors of the file and of records that could not be judged
}

// each judges the records of files and folders in parallel, one file per CPU, and yields the
// files in order. keep extracts the needed data from a record. The record itself is then
// freed, so that memory suffices for many records. If several files have the same run, only
// one counts. The others are skipped and reported, see [record.Copies].
func each[T any](s *app, args []string, format string, keep func(instrument.Judged) T) iter.Seq[ofFile[T]] {
	type one struct {
		runID string
		nth   int // index in its file
		kept  T
	}
	read := func(f ofFile[one]) ofFile[one] {
		r, err := s.lines().Open(f.path)
		if err == nil {
			defer func() { _ = r.Close() }() // nothing was written
			nth := -1
			err = r.Each(func(rec *record.Record) {
				nth++
				j, wrong := s.instruments.Judge(rec)
				if wrong == nil {
					wrong = s.checkFormat(format, rec.Header.Experiment)
				}
				if wrong != nil {
					f.err = errors.Join(f.err, fmt.Errorf("%s: %w", f.path, wrong))
					return
				}
				f.kept = append(f.kept, one{rec.Header.RunID, nth, keep(instrument.Judged{Record: rec, Judgement: j})})
			})
		}
		f.err = errors.Join(f.err, err)
		return f
	}
	return func(yield func(ofFile[T]) bool) {
		var files []ofFile[one]
		for _, arg := range args {
			paths, named, err := s.filesOf(arg)
			if err != nil && !yield(ofFile[T]{path: arg, named: true, err: err}) {
				return
			}
			for _, path := range paths {
				files = append(files, ofFile[one]{path: path, named: named})
			}
		}
		var copies record.Copies
		at := 0
		for runs := range inOrder(files, func(f ofFile[one]) []string { return s.skim(f.path) }) {
			path := files[at].path
			at++
			copies.Add(runs, func() (all []record.Extent) {
				if r, err := s.lines().Open(path); err == nil { // otherwise read reports the error
					defer func() { _ = r.Close() }()
					all = r.Extents()
				}
				return all
			})
		}
		at = 0
		for f := range inOrder(files, read) {
			out := ofFile[T]{path: f.path, named: f.named, err: f.err}
			for _, one := range f.kept {
				if of, counts := copies.Counts(at, one.nth, one.runID); !counts {
					why := fmt.Sprintf("%s has the run %s, which %s has as well or better: it counts once", f.path, one.runID, files[of].path)
					if files[of].path == f.path {
						why = fmt.Sprintf("%s has the run %s more than once: it counts once", f.path, one.runID)
					}
					fmt.Fprintf(s.Err, "tare: skipped: %s\n", cleanLines(why))
					continue
				}
				out.kept = append(out.kept, one.kept)
			}
			at++
			if !yield(out) {
				return
			}
		}
	}
}

// skim returns the ids of the runs in a file without reading the rest. It skips pipes,
// which can only be read once. read reports errors of the file.
func (s *app) skim(path string) (runs []string) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	r, err := s.lines().Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = r.Close() }()
	for len(runs) <= record.MaxRecords {
		word, text, err := r.Skim()
		if err != nil {
			break
		}
		if word != record.TypeHeader {
			continue
		}
		if header, err := s.lines().Decode(text); err == nil {
			runs = append(runs, header.(*record.Header).RunID)
		}
	}
	return runs
}

// filesOf returns the record files in a folder, sorted by path. For any other argument it
// returns the argument itself.
func (s *app) filesOf(arg string) (paths []string, named bool, err error) {
	if info, err := os.Stat(arg); err != nil || !info.IsDir() {
		return []string{arg}, true, nil
	}
	there, bounded := record.Walk(os.DirFS(arg))
	for _, path := range slices.Sorted(maps.Keys(there)) {
		paths = append(paths, filepath.Join(arg, path))
	}
	if bounded != "" {
		fmt.Fprintf(s.Err, "tare: %s: %s\n", term.Clean(arg), bounded)
	}
	if paths == nil {
		err = fmt.Errorf("%s: no record in this folder or its subfolders: records end in .jsonl or .jsonl.zst", arg)
	}
	return paths, false, err
}

// inOrder calls do for each element, in parallel on all CPUs, and yields the results in
// order.
func inOrder[T, R any](all []T, do func(T) R) iter.Seq[R] {
	return func(yield func(R) bool) {
		ahead, done := make(chan chan R, runtime.GOMAXPROCS(0)-1), make(chan struct{})
		defer close(done)
		go func() {
			defer close(ahead)
			for _, one := range all {
				answer := make(chan R, 1)
				select {
				case ahead <- answer:
					go func() { answer <- do(one) }()
				case <-done:
					return
				}
			}
		}()
		for answer := range ahead {
			if !yield(<-answer) {
				return
			}
		}
	}
}

// judged judges stored records, each with its own instrument. unread has an error for each
// unreadable record.
func (s *app) judged(paths []string, format string) (all []instrument.Judged, unread error) {
	for f := range each(s, paths, format, func(j instrument.Judged) instrument.Judged { return j }) {
		all, unread = append(all, f.kept...), errors.Join(unread, f.err)
	}
	return all, unread
}

// skip reports a file in a folder that is not a readable record. For a file named by the
// user it returns the error.
func (f *ofFile[T]) skip(s *app) error {
	if f.err == nil || f.named {
		return f.err
	}
	fmt.Fprintf(s.Err, "tare: skipped: %s\n", cleanLines(f.err.Error()))
	return nil
}
