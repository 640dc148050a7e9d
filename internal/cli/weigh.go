package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	lifecyclerun "github.com/tare-bench/tare/internal/instrument/lifecycle/run"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/internal/term"
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

// weighLifecycle performs a lifecycle.
func weighLifecycle(ctx context.Context, s Streams, l lifecycle.Options, out outputFlags) error {
	node := &nodestat.Reader{}
	return weigh(ctx, s, &out, weighing{
		experiment: lifecycle.Name, engines: l.Engines, steady: true,
		targets: func() ([]subject.Target, []record.Finding, error) {
			targets, skipped, err := choose(ctx, s, selection{&l.Whom, []*string{&l.Baseline, &l.Subject}}, out.quiet)
			if err != nil {
				return nil, nil, err
			}
			out.subject = cmp.Or(out.subject, l.Subject)
			l.Subject = out.subject
			return targets, skipped, cmp.Or(checkOps(targets, l.Ops), checkNames(targets, l.Baseline, "--baseline"), checkNames(targets, out.subject, "--subject"))
		},
		run: func(o *session) (*record.Record, instrument.Judgement, error) {
			return outcome(lifecyclerun.Run(ctx, lifecyclerun.Options{Plan: l, Options: o.options, Targets: o.targets, Node: func() record.Node {
				n, _ := node.Read() // which says itself that it is not known
				return n
			}}))
		},
	})
}

// checkFormat refuses a format in which the report of an experiment cannot be made: it
// would be a pity to find out after the run that there is none.
func checkFormat(format, experiment string) error {
	if err := instrument.CheckFormat(format, experiment); err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	return nil
}

// show prints the reports of judged runs and returns the exit code that they call
// for.
func show(s Streams, out outputFlags, all ...instrument.Judged) (int, error) {
	if err := checkSubject(all, out.subject); err != nil {
		return 0, err
	}
	if err := instrument.Report(s.Out, out.format, all, pageOptions(s, out)); err != nil {
		return 0, fmt.Errorf("write the report: %w", err)
	}
	for _, one := range all {
		if failed, _, findings := one.Result(); codeOf(failed, findings) != ExitDone {
			return ExitFailed, nil
		}
	}
	return ExitDone, nil
}

// pageOptions are those of a page of any instrument: as wide as the terminal, or
// 120 columns where there is none.
func pageOptions(s Streams, out outputFlags) page.Options {
	columns, ok := term.Columns(s.Out)
	if !ok {
		columns = 120
	}
	return page.Options{Width: columns, Colour: term.Colour(s.Out), Subject: out.subject, Verbose: out.verbose, Explain: out.explain}
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

// selection is the part of a measurement that says what is weighed.
type selection struct {
	*terms.Whom
	named []*string // other names of targets in it, emptied if theirs is not here
}

// settings are those for finding the targets.
func (c selection) settings() find.Settings {
	return find.Settings{Engine: c.Engines.Of, Via: c.Via}
}

// choose finds the targets of the plan, or all that can be weighed. Those that
// the plan names, that are not here and that may be missing are told of in
// findings.
func choose(ctx context.Context, s Streams, c selection, quiet bool) ([]subject.Target, []record.Finding, error) {
	if len(c.Targets) == 0 {
		found := find.All(ctx, c.settings())
		if !quiet {
			tellMissing(s, found)
		}
		return present(found), nil, nil
	}
	found, err := find.Named(ctx, c.Targets, c.settings())
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
	if errs != nil && (c.Missing != terms.MissingSkip || len(targets) == 0) {
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

func joinOps(ops []subject.Op) string {
	var names []string
	for _, op := range ops {
		names = append(names, string(op))
	}
	return strings.Join(names, ",")
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
