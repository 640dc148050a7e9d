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

// ofFile is a file with records, and what was kept of each.
type ofFile[T any] struct {
	path  string
	named bool // by the user, not found below a folder
	kept  []T
	err   error // of each that could not be judged, and of the file
}

// each judges the records of files and of all below folders, as many files at a time as
// there are CPUs, and yields them in their order. What is kept of a record is said by
// keep; the record itself is forgotten, so that there can be many. Of files that have the
// same run one counts, and the others are told of and left out, see [record.Copies].
func each[T any](s *app, args []string, format string, keep func(instrument.Judged) T) iter.Seq[ofFile[T]] {
	type one struct {
		runID string
		nth   int // in its file
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
				if r, err := s.lines().Open(path); err == nil { // else that is told when it is judged
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
					fmt.Fprintf(s.Err, "tare: left out: %s\n", cleanLines(why))
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

// skim tells which runs a file has, without reading what else is in it. A pipe can be
// read once only, and what is wrong with a file is told when it is judged.
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

// filesOf are the files below a folder that may be records, in the order of their paths;
// of anything else it is the path itself.
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
		err = fmt.Errorf("%s: no record in this folder or below: they end in .jsonl or .jsonl.zst", arg)
	}
	return paths, false, err
}

// inOrder does something with each of many, as many at a time as there are CPUs, and
// yields what came of them in their order.
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

// judged judges stored records, each by its own instrument, and keeps all of them. What
// cannot be read is an error, one for each of them, beside the others.
func (s *app) judged(paths []string, format string) (all []instrument.Judged, unread error) {
	for f := range each(s, paths, format, func(j instrument.Judged) instrument.Judged { return j }) {
		all, unread = append(all, f.kept...), errors.Join(unread, f.err)
	}
	return all, unread
}

// skip tells of a file below a folder that is no record, which is then left out of what
// the others come to; one that was named is an error.
func (f *ofFile[T]) skip(s *app) error {
	if f.err == nil || f.named {
		return f.err
	}
	fmt.Fprintf(s.Err, "tare: left out: %s\n", cleanLines(f.err.Error()))
	return nil
}
