package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/record"
)

func newRun(s *app) *cobra.Command {
	var out outputFlags
	var given *option.Given
	var yes bool
	var against string
	c := &cobra.Command{
		Use:   "run PLAN|RECORD",
		Short: "Run a plan file, or repeat the plan of a record",
		Long: `Run the measures of a plan file in their order. Flags override the file in every measure
that has such an option; a flag that no measure has is an error. Errors in the file are
reported with file, line and column before anything runs.

For a record, tare repeats its plan: the same targets, settings and seed. Settings that
only the command line accepts, such as a device to overwrite, must be given again.

In a format for programs the reports of all measures are one document, at the end.
A measure without available targets fails the plan, unless it has missing: skip.

If -o is a folder (an existing one, or a name that ends in / or has no extension), the run
ends with a whole document there: report.html, report.md, the figures as CSV and JSON, a
record of each measure, and the plan to repeat all of it. Measures that were skipped,
failed or interrupted are listed with the reason, and the others continue. tare report DIR
-o DIR2 writes the same document from the records. With --against it also has the tables of
a publication, next to the measured figures.

Before it starts, tare prints how much it writes and how long it takes, if known. More than
20 GB or one hour needs confirmation or --yes.`,
		Example: "  tare run plan.yaml --rounds 6\n  tare run run.jsonl --rounds 1\n  tare run plan.yaml --rounds 1 -o weighed/",
		Args:    takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			_, p, err := s.loadPlan(args[0])
			if err != nil {
				return err
			}
			if err := override(c.Context(), s, given, p.Measure); err != nil {
				return err
			}
			for i := range p.Measure {
				if err := s.checkFormat(out.format, p.Measure[i].Name); err != nil {
					return err
				}
			}
			if against != "" && !isFolder(out.record) {
				return errors.New("--against: published figures need a document: add -o DIR/, or use tare report RECORD --against afterwards")
			}
			if out.theirs, err = theirsOf(against); err != nil {
				return err
			}
			if t := out.theirs; t != nil && !slices.ContainsFunc(p.Measure, func(m plan.Measure) bool { return m.Name == t.Experiment }) {
				return fmt.Errorf("--against: these published figures are of %s, but the plan has no such measure", t.Experiment)
			}
			if err := s.ahead(c.Context(), p.Measure, out.quiet, yes); err != nil {
				return err
			}
			return s.performAll(c.Context(), p, given.Names(), out)
		},
	}
	out.addRecord(c.Flags())
	c.Flags().Lookup("output").Usage = "folder for a document of all measures (DIR/, an existing folder, or a name without an extension), or record to write, .jsonl or .jsonl.zst (default: a new file in the user's data folder)"
	c.Flags().StringVar(&against, "against", "", "published figures to show in the document of -o DIR/: one of those included in tare, or a file in the same format")
	c.Flags().BoolVar(&yes, "yes", false, "start without confirmation")
	out.addForce(c.Flags())
	out.addForm(c.Flags(), s.instruments)
	var sets []*option.Set
	for _, i := range s.instruments {
		sets = append(sets, option.Of(i.New()))
	}
	given = option.Collect(c.Flags(), sets...)
	return c
}

// loadPlan reads a plan file, or the plan of a record, and returns its text too.
func (s *app) loadPlan(path string) (text []byte, p *plan.Plan, err error) {
	if text, err = s.planText(path); err == nil {
		p, err = plan.Parse(path, text, s.instruments)
	}
	return text, p, err
}

// planText returns the text of a plan file, or of a plan that repeats a record.
func (s *app) planText(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%[1]s is a folder, not a plan: tare report %[1]s reports its records, tare run %[2]s repeats a document's plan", path, filepath.Join(path, planFile))
	}
	text, err := option.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := s.lines().NewReader(bytes.NewReader(text)) // only the first line is needed: the header of a record
	defer r.Close()                                 //nolint:errcheck // nothing was written
	line, err := r.Next()
	switch header, is := line.(*record.Header); {
	case is:
		return plan.Again(path, []*record.Header{header}, s.instruments)
	case err != nil && !errors.Is(err, record.ErrNotRecord):
		return nil, err
	}
	return text, nil
}

// override applies the flags to every measure that has such an option, and prints which
// measures those are. A flag that no measure has is an error: ignoring it would measure
// something else than requested.
func override(ctx context.Context, s *app, given *option.Given, measures []plan.Measure) error {
	for _, flag := range given.Names() {
		var with, without []string
		for i, m := range measures {
			name := fmt.Sprintf("%s (%d)", m.Name, i+1)
			if m.Set.Takes(flag) {
				with = append(with, name)
			} else {
				without = append(without, name)
			}
		}
		switch {
		case len(with) == 0:
			return option.WrongFlag(flag, "no measure of the plan has this option%s", takenBy(measures))
		case len(without) > 0:
			fmt.Fprintf(s.Err, "--%s: for %s; not for %s\n", flag, strings.Join(with, ", "), strings.Join(without, ", "))
		case len(with) > 1:
			fmt.Fprintf(s.Err, "--%s: for all measures\n", flag)
		}
	}
	for _, m := range measures {
		equip(m.Options)
		if err := given.Lay(m.Set); err != nil {
			return err
		}
		m.Set.Before(func(ctx context.Context) error { return unknown(ctx, m.Options) })
		if err := m.Set.Finish(ctx); err != nil {
			return err
		}
	}
	return nil
}

// unknown validates target names. Only this package knows all engines.
func unknown(ctx context.Context, o option.Options) error {
	w, _ := whom(o)
	_, err := find.Named(ctx, w.Targets, settings(w))
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	for i, name := range w.Targets {
		if _, wrong := find.Named(ctx, []string{name}, settings(w)); wrong != nil {
			return option.FieldErrors{option.Wrongf("targets", "%v", wrong).At(i)}
		}
	}
	return err
}

// takenBy lists the flags of each kind of measure in a plan.
func takenBy(measures []plan.Measure) string {
	var lines []string
	for _, m := range measures {
		line := fmt.Sprintf("\n%s takes --%s", m.Name, strings.Join(m.Set.Flags(), ", --"))
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// performAll runs the measures of a plan in order and writes their document.
func (s *app) performAll(ctx context.Context, p *plan.Plan, flags []string, out outputFlags) error {
	if isFolder(out.record) {
		if err := newFolder(out.record); err != nil {
			return err
		}
		out.dir = out.record
		if err := s.keepPlan(p, flags, out); err != nil {
			return err
		}
	} else if len(p.Measure) == 1 {
		m := &p.Measure[0]
		return s.perform(ctx, m.Name, m.Options, out.measure(p, 0, flags))
	}
	var kept []instrument.Judged
	if _, ok := export.FormatOf(out.format); ok { // one document for all measures
		out.keep = &kept
	}
	failed := s.performEach(ctx, p, flags, out)
	if len(kept) > 0 {
		out.keep = nil
		_, err := s.show(kept, out)
		failed = errors.Join(err, failed)
	}
	if out.dir != "" {
		all, err := s.judged([]string{out.dir}, "text")
		if err = errors.Join(err, s.document(out.dir, all, out)); err != nil {
			fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(err.Error()))
			failed = errors.Join(failed, exit{ExitUsage})
		}
	}
	return failed
}

// measure returns the output flags for one measure of a plan.
func (f outputFlags) measure(p *plan.Plan, i int, flags []string) outputFlags {
	m := &p.Measure[i]
	f.of = &record.Part{Plan: p.Name, Description: p.Description, Source: p.Source, Measure: i + 1, Measures: len(p.Measure),
		Flags: slices.DeleteFunc(slices.Clone(flags), func(name string) bool { return !m.Set.Takes(name) })}
	switch {
	case f.dir != "":
		f.record = filepath.Join(f.dir, fmt.Sprintf("%02d-%s.jsonl", i+1, m.Name))
	case f.record != "" && len(p.Measure) > 1:
		f.record = numbered(f.record, i+1)
	}
	return f
}

func (s *app) performEach(ctx context.Context, p *plan.Plan, flags []string, out outputFlags) (failed error) {
	var none error // result if every measure was skipped
	done := false
	for i := range p.Measure {
		m, each := &p.Measure[i], out.measure(p, i, flags)
		err := error(exit{ExitInterrupted})
		if ctx.Err() == nil {
			err = s.perform(ctx, m.Name, m.Options, each)
		}
		if err != nil && out.dir != "" {
			err = errors.Join(err, s.leave(m, &each, ctx.Err() != nil, err))
		}
		var code exit
		var missing *perform.Absent
		switch {
		case err != nil && ctx.Err() != nil && out.dir == "":
			return err
		case err != nil && ctx.Err() != nil: // also record measures that were not started
			failed = errors.Join(err, failed)
		case errors.As(err, &missing): // continue with the other measures
			fmt.Fprintf(s.Err, "tare: measure %d of %d: no target is available here\n%s\n", i+1, len(p.Measure), cleanLines(missing.Error()))
			if skips(m) {
				none = exit{ExitUsage}
			} else {
				failed = errors.Join(failed, exit{ExitUsage})
			}
		case errors.As(err, &code) && code.code == ExitFailed:
			failed = errors.Join(code, failed) // failed operations take precedence
		case err != nil && out.dir == "":
			return err
		case err != nil: // the document has the reason
			fmt.Fprintf(s.Err, "tare: measure %d of %d: %s\n", i+1, len(p.Measure), cleanLines(err.Error()))
			failed = errors.Join(failed, exit{ExitUsage})
		default:
			done = true
		}
	}
	if failed == nil && !done {
		return none
	}
	return failed
}

// numbered inserts a number before a record's extension.
func numbered(path string, n int) string {
	dir, base := filepath.Split(path)
	name, ext, _ := strings.Cut(base, ".")
	if ext != "" {
		ext = "." + ext
	}
	return filepath.Join(dir, fmt.Sprintf("%s-%d%s", name, n, ext))
}
