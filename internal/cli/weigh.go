package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	lifecyclerun "github.com/tare-bench/tare/internal/instrument/lifecycle/run"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/report"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/version"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// outputFlags say what becomes of a result.
type outputFlags struct {
	record  string
	format  string
	subject string
	quiet   bool
	verbose bool
	explain bool
}

func (f *outputFlags) add(set *pflag.FlagSet) {
	f.addRecord(set)
	f.addFormat(set)
}

func (f *outputFlags) addRecord(set *pflag.FlagSet) {
	set.StringVarP(&f.record, "output", "o", "", "record to write, .jsonl or .jsonl.zst (default: a new file in the user's data folder)")
	set.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
}

// addFormat adds the flags of reports of every experiment.
func (f *outputFlags) addFormat(set *pflag.FlagSet) {
	f.addForm(set)
	set.StringVar(&f.subject, "subject", "", "target whose column of the iSulad form is compared with every other (default: every other with the baseline)")
}

// addForm adds those without the ones of the iSulad form.
func (f *outputFlags) addForm(set *pflag.FlagSet) {
	set.StringVar(&f.format, "format", "text", "text, json, md or csv")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "show everything: every stamp, CPU time, memory and the reason of each verdict; every cgroup's path")
	set.BoolVar(&f.explain, "explain", false, "of overhead: show by which fact every role was decided, and how charges and processes agree")
}

// weigh performs a lifecycle, prints its report and says where the record is.
func weigh(ctx context.Context, s Streams, l plan.Lifecycle, out outputFlags) error {
	if err := instrument.CheckFormat(out.format, lifecycle.Name); err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	if err := checkEngines(l.Engines); err != nil {
		return err
	}
	targets, skipped, err := choose(ctx, s, selectionOf(&l), out.quiet)
	if err != nil {
		return err
	}
	if err := checkOps(targets, l.Ops); err != nil {
		return err
	}
	if err := checkNames(targets, l.Baseline, "--baseline"); err != nil {
		return err
	}
	if out.subject == "" {
		out.subject = l.Subject
	}
	l.Subject = out.subject
	if err := checkNames(targets, out.subject, "--subject"); err != nil {
		return err
	}
	o, err := begin(s, "lifecycle", targets, skipped, l.Engines, out)
	if err != nil {
		return err
	}
	o.settled = lane.Settle() // last: what the machine has is not what tare is left with
	node := &nodestat.Reader{}
	rec, err := lifecyclerun.Run(ctx, lifecyclerun.Options{
		Plan: l, Options: o.options, Progress: o.progress.show,
		Node: func() record.Node {
			n, err := node.Read()
			if err != nil {
				n.Known = false
			}
			return n
		},
	})
	return o.end(ctx, rec, err, func() (int, error) { return show(s, rec, out) })
}

// formatOf is a format in which the report of an experiment can be made: it would
// be a pity to find out after the run that there is none.
func formatOf(name, experiment string) (report.Format, error) {
	format, err := report.ParseFormat(name)
	if err == nil {
		err = format.Of(experiment)
	}
	if err != nil {
		return "", fmt.Errorf("--format: %w", err)
	}
	return format, nil
}

// outing is one run of an experiment: its folders, its record, its progress.
type outing struct {
	streams  Streams
	run      *workspace.Run
	record   *record.Writer
	path     string // of the record
	progress *progress
	settled  func()
	options  run.Options
}

// begin makes what a run needs. What it made is removed by end.
func begin(s Streams, experiment string, targets []subject.Target, skipped []record.Finding, engines plan.Engines, out outputFlags) (*outing, error) {
	roots := workspace.DefaultRoots()
	own, err := workspace.New(roots)
	if err != nil {
		return nil, err
	}
	w, path, err := createRecord(out.record, experiment, own.ID)
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	hintLeftovers(s, roots)
	if err := keepEngines(own, targets, engines); err != nil {
		return nil, errors.Join(err, w.Close(), own.Close())
	}
	return &outing{
		streams: s, run: own, record: w, path: path, progress: newProgress(s, out.quiet), settled: func() {},
		options: run.Options{
			Targets: targets, RunID: own.ID, Dirs: own.Dirs, Write: w.Write, Before: skipped, After: rootChanged(),
			Header: record.Header{Started: time.Now().UTC(), Command: append([]string{"tare"}, commandLine()...), Version: version.String(), Environment: environment(roots.Data)},
		},
	}, nil
}

// end puts everything away, shows the result, and returns what the command ends
// with.
func (o *outing) end(ctx context.Context, rec *record.Record, runErr error, show func() (int, error)) error {
	o.settled()
	o.progress.done()
	runErr = errors.Join(runErr, o.record.Close())
	closeErr := closeRun(o.run, rec)
	code, err := show()
	if err != nil {
		return errors.Join(runErr, closeErr, err)
	}
	fmt.Fprintf(o.streams.Err, "record: %s\n", o.path)
	if err := errors.Join(runErr, closeErr); err != nil {
		if ctx.Err() == nil {
			return fmt.Errorf("%w\nwhat was measured before is shown above", err)
		}
		fmt.Fprintf(o.streams.Err, "tare: %s\n", cleanLines(err.Error()))
	}
	if ctx.Err() != nil {
		fmt.Fprintf(o.streams.Err, "tare: interrupted; what was measured is shown above and saved\n")
		return exit{ExitInterrupted}
	}
	if code != ExitDone {
		return exit{code}
	}
	return nil
}

// closeRun removes the run's folders, unless something is left on an engine: then
// tare clean needs them to find it.
func closeRun(run *workspace.Run, rec *record.Record) error {
	if rec != nil && slices.ContainsFunc(rec.Findings, func(f record.Finding) bool { return f.Code == finding.LeftBehind }) {
		run.Leave()
		return nil // the finding says it
	}
	return run.Close()
}

// rootChanged remembers which controllers the root of cgroup v2 hands down, and
// returns a look at what runtimes have added to them: they do so when they make
// a container's group, and it outlives the container.
func rootChanged() func() []record.Finding {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return nil
	}
	before := cgroup.HandedDown(hs)
	return func() []record.Finding {
		added := cgroup.Added(before, cgroup.HandedDown(hs))
		if len(added) == 0 {
			return nil
		}
		return []record.Finding{{Code: finding.RootChanged, Level: "note",
			Message: "the root of cgroup v2 now hands down to its groups, too: " + strings.Join(added, ", ") + "; a runtime did that",
			Advice:  "tare leaves it, since others may use it by now; a controller is taken back with echo -NAME > /sys/fs/cgroup/cgroup.subtree_control"}}
	}
}

// environment is the machine, and how well it can be measured.
func environment(dir string) record.Environment {
	e := machine.Capture(dir)
	e.Lanes = lane.BestPriority().String()
	return e
}

// commandLine is what the user typed.
func commandLine() []string { return os.Args[1:] }

// show prints the report of a run and returns the exit code it calls for.
func show(s Streams, rec *record.Record, out outputFlags) (int, error) {
	j, err := instrument.Judge(rec)
	if err != nil {
		return 0, err
	}
	all := []instrument.Judged{{Record: rec, Judgement: j}}
	if err := checkSubject(all, out.subject); err != nil {
		return 0, err
	}
	if err := instrument.Report(s.Out, out.format, all, pageOptions(s, out)); err != nil {
		return 0, fmt.Errorf("write the report: %w", err)
	}
	failed, _, findings := j.Result()
	return codeOf(failed, findings), nil
}

// pageOptions are those of a page of any instrument: as wide as the terminal, or
// 120 columns where there is none.
func pageOptions(s Streams, out outputFlags) page.Options {
	o := reportOptions(s, out)
	return page.Options{Width: o.Width, Colour: o.Colour, Subject: o.Subject, Verbose: o.Verbose, Explain: o.Explain}
}

// reportOptions are those of a report of any experiment: as wide as the terminal, or
// 120 columns where there is none.
func reportOptions(s Streams, out outputFlags) report.Options {
	columns, ok := term.Columns(s.Out)
	if !ok {
		columns = 120
	}
	return report.Options{Width: columns, Colour: term.Colour(s.Out), Subject: out.subject, Verbose: out.verbose, Explain: out.explain}
}

// codeOf is the exit code that a result calls for.
func codeOf(failed int, findings []record.Finding) int {
	if failed > 0 || hasError(findings) {
		return ExitFailed
	}
	return ExitDone
}

func hasError(findings []record.Finding) bool {
	for _, f := range findings {
		if f.Level == "error" {
			return true
		}
	}
	return false
}

// selection is the part of a plan that says what is weighed.
type selection struct {
	targets *[]string
	missing plan.Missing
	via     *[]string
	engines *plan.Engines
	named   []*string // other names of targets in it, emptied if theirs is not here
}

func selectionOf(l *plan.Lifecycle) selection {
	return selection{&l.Targets, l.Missing, &l.Via, &l.Engines, []*string{&l.Baseline, &l.Subject}}
}

// settings are those for finding the targets.
func (c selection) settings() find.Settings {
	return find.Settings{Engine: c.engines.Of, Via: *c.via}
}

// choose finds the targets of the plan, or all that can be weighed. Those that
// the plan names, that are not here and that may be missing are told of in
// findings.
func choose(ctx context.Context, s Streams, c selection, quiet bool) ([]subject.Target, []record.Finding, error) {
	if len(*c.targets) == 0 {
		found := find.All(ctx, c.settings())
		if !quiet {
			tellMissing(s, found)
		}
		return present(found), nil, nil
	}
	found, err := find.Named(ctx, *c.targets, c.settings())
	if err != nil {
		return nil, nil, err
	}
	targets := present(found)
	var skipped []record.Finding
	var errs []error
	for _, f := range found {
		if f.Target != nil {
			continue
		}
		errs = append(errs, f.Why)
		skipped = append(skipped, record.Finding{Code: finding.NotWeighed, Level: "note", Target: f.Name,
			Message: "not weighed: " + f.Why.Reason, Advice: f.Why.Advice})
		for _, name := range c.named {
			if *name == f.Name {
				*name = ""
			}
		}
	}
	if errs != nil && (c.missing != plan.MissingSkip || len(targets) == 0) {
		return nil, nil, &notHere{errors.Join(errs...)}
	}
	if !quiet {
		tellMissing(s, found)
	}
	return targets, skipped, nil
}

// notHere says why nothing of a measure can be weighed on this machine.
type notHere struct{ error }

func (e *notHere) Unwrap() error { return e.error }

func present(found []find.Found) []subject.Target {
	var out []subject.Target
	for _, f := range found {
		if f.Target != nil {
			out = append(out, f.Target)
		}
	}
	return out
}

// tellMissing says what is left out before the work begins.
func tellMissing(s Streams, found []find.Found) {
	for _, f := range found {
		if f.Target != nil {
			continue
		}
		fmt.Fprintf(s.Err, "not weighed: %s: %s", f.Name, term.Clean(f.Why.Reason))
		if f.Why.Advice != "" {
			fmt.Fprintf(s.Err, " → %s", term.Clean(f.Why.Advice))
		}
		fmt.Fprintln(s.Err)
	}
}

// checkOps refuses operations that none of the targets has.
func checkOps(targets []subject.Target, ops []subject.Op) error {
	for _, t := range targets {
		info := t.Info()
		for _, op := range ops {
			if lifecycle.Absent(&info, op) == "" {
				return nil
			}
		}
	}
	return fmt.Errorf("--ops: none of the targets has %s", joinOps(ops))
}

func checkNames(targets []subject.Target, name, flag string) error {
	var names []string
	for _, t := range targets {
		if t.Info().Name == name {
			return nil
		}
		names = append(names, t.Info().Name)
	}
	if name == "" {
		return nil
	}
	return fmt.Errorf("%s: %q is not among the targets that are weighed: %s", flag, name, strings.Join(names, ", "))
}

// createRecord opens the record's file: the given one, or a new one in the
// user's data folder.
func createRecord(path, experiment, id string) (*record.Writer, string, error) {
	if path == "" {
		dir := os.Getenv("XDG_DATA_HOME")
		if dir == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, "", fmt.Errorf("no place for the record: %w; name one with -o FILE", err)
			}
			dir = filepath.Join(home, ".local", "share")
		}
		dir = filepath.Join(dir, "tare", "records")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, "", fmt.Errorf("make a place for the record: %w; name another with -o FILE", err)
		}
		path = filepath.Join(dir, fmt.Sprintf("%s-%s-%s.jsonl", experiment, time.Now().UTC().Format("20060102T150405Z"), id))
	}
	w, err := record.Create(path)
	if err != nil {
		return nil, "", fmt.Errorf("%w; name another with -o FILE", err)
	}
	return w, path, nil
}

// hintLeftovers tells of interrupted runs; their containers may still be there
// and disturb.
func hintLeftovers(s Streams, roots workspace.Roots) {
	left, _, err := workspace.Leftovers(roots)
	if err != nil || len(left) == 0 {
		return
	}
	var ids []string
	for _, l := range left {
		ids = append(ids, l.RunID)
	}
	fmt.Fprintf(s.Err, "left behind by interrupted runs: %s → tare clean\n", strings.Join(ids, ", "))
}
