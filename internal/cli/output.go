package cli

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/published"
	"github.com/tare-bench/tare/record"
)

// outputFlags define the output of a result.
type outputFlags struct {
	record  string
	format  string
	quiet   bool
	force   bool
	verbose bool
	keep    *[]instrument.Judged // collects results for a later report; nil: print at once
	dir     string               // folder of the document; "": none
	of      *record.Part         // measure of a plan; nil: none
	theirs  *published.Report    // published figures for the document; nil: none
}

func (f *outputFlags) addRecord(set *pflag.FlagSet) {
	f.addFile(set)
	set.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
}

// addForce declares --force for instruments with lanes.
func (f *outputFlags) addForce(set *pflag.FlagSet) {
	set.BoolVar(&f.force, "force", false, "start even if the machine lacks processes or memory for all lanes")
}

func (f *outputFlags) addFile(set *pflag.FlagSet) {
	set.StringVarP(&f.record, "output", "o", "", "record to write, .jsonl or .jsonl.zst (default: a new file in the user's data folder)")
}

// addForm declares the report flags of the given instruments.
func (f *outputFlags) addForm(set *pflag.FlagSet, of instrument.List) {
	formats, behind := "text, md or html (one file, with charts) for people; for programs "+export.FormatNames(), ""
	for _, one := range of {
		for _, name := range slices.Sorted(maps.Keys(one.Formats)) {
			formats += "; " + name + ": " + one.Formats[name].Help
		}
		if len(of) == 1 {
			behind = ": " + one.Verbose
		}
	}
	set.StringVar(&f.format, "format", "text", formats)
	set.BoolVarP(&f.verbose, "details", "v", false, "show everything"+strings.TrimSuffix(behind, ": "))
}

// checkFormat rejects a format that the instrument does not support, before the run rather
// than after it.
func (s *app) checkFormat(format, experiment string) error {
	if err := s.instruments.CheckFormat(format, experiment); err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	if f, _ := export.FormatOf(format); (f.Binary || format == "html") && term.IsTerminal(s.Out) {
		return fmt.Errorf("--format: cannot write %s to a terminal: redirect it to a file, such as > run.%s", format, format)
	}
	return nil
}

// show prints the reports of judged runs and returns their exit code.
func (s *app) show(all []instrument.Judged, out outputFlags) (code int, err error) {
	if out.keep != nil {
		*out.keep = append(*out.keep, all...)
	} else if err := s.instruments.Report(s.Out, out.format, all, s.pageOptions(out)); err != nil {
		return 0, fmt.Errorf("write the report: %w", err)
	}
	for _, one := range all {
		failed, _, findings := one.Result()
		code = max(code, codeOf(failed, findings))
	}
	return code, nil
}

// into returns an app whose output is written to the file at path when the command ends.
func (s *app) into(path string, force bool) (to *app, written func(error) error) {
	var text bytes.Buffer
	own := *s
	own.Out = &text
	return &own, func(err error) error {
		if _, known := errors.AsType[exit](err); err != nil && !known {
			return err
		}
		if wrong := writeOutput(path, text.Bytes(), force); wrong != nil {
			return fmt.Errorf("write the report: %w", wrong)
		}
		return err
	}
}

// showKept prints the report of records from imported results or logs.
func (s *app) showKept(all []instrument.Judged, paths []string, out outputFlags) error {
	code, err := s.show(all, out)
	if err != nil {
		return err
	}
	for _, path := range paths {
		fmt.Fprintf(s.Err, "record: %s\n", path)
	}
	return ended(code)
}

// ended returns the error for an exit code.
func ended(code int) error {
	if code != ExitDone {
		return exit{code}
	}
	return nil
}

// pageOptions returns page options with the terminal's width, or 120 columns without a
// terminal.
func (s *app) pageOptions(out outputFlags) page.Options {
	columns, ok := term.Columns(s.Out)
	if !ok {
		columns = 120
	}
	return page.Options{Width: columns, Colour: term.Colour(s.Out), Verbose: out.verbose}
}

// codeOf returns the exit code for a result.
func codeOf(failed int, findings []record.Finding) int {
	if failed > 0 || slices.ContainsFunc(findings, func(f record.Finding) bool { return f.Level == "error" }) {
		return ExitFailed
	}
	return ExitDone
}
