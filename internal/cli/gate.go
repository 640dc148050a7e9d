package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/compare"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/terms"
)

// gateOptions are the lifecycle options for measuring here, and the options of the gate.
type gateOptions struct {
	lifecycle.Options
	worse            float64
	metric           string
	self, interleave bool
	unlike           bool
	control          string
	earlier          []string
	known            []compare.Run // runs read from the earlier records
}

// selfRuns is the number of runs that measure the spread of a runtime.
const selfRuns = 5

// compares reports whether the arguments are records.
func (o *gateOptions) compares(args []string) bool {
	return !o.interleave && (!o.self || len(args) > 1)
}

// Declare declares the flags.
func (o *gateOptions) Declare(s *option.Set) {
	o.Options.Declare(s)
	option.Var(s, &o.worse, "worse", "maximum regression of NEW, e.g. 5%", terms.Margin, option.Must(terms.CheckMargin))
}

func newGate(s *app) *cobra.Command {
	var out outputFlags
	o := &gateOptions{Options: lifecycle.Defaults(), worse: stat.DefaultMargin}
	equip(&o.Options)
	set := option.Of(o)
	c := &cobra.Command{
		Use:   "gate [--self] BASE NEW | gate --interleave TARGET TARGET | gate --self TARGET",
		Short: "Decide for a CI job whether a new version is worse than the old one",
		Long: `Decide whether NEW is worse than BASE by more than a margin. It is worse if an interval,
adjusted for all gated figures, lies wholly beyond the margin. It is not worse if the
interval of every figure lies wholly below the margin.

BASE and NEW are records, folders or NAME=FILE, as for tare compare; only the version of
the measured runtime may differ. With --interleave, tare lifecycle measures both here in
the same rounds. CI jobs should use it, since disturbances of the machine then affect both
sides. With --self, one runtime is first measured against itself, and a margin below the
noise of this machine is refused.

Records need a basis for a verdict: at least three per side, or a control (floor, host
or --control) in both. Without one, or with a disturbed side, the gate has no verdict. The
spread of single runs comes from --earlier records of this machine. With --self, tare runs
the plan of BASE five times here to measure it.

Exit status: 0 shown not to be worse; 3 worse; 4 not decided, with advice on how to reach
a decision; 1 usage or environment error, or a margin below the noise that --self finds.`,
		Example: "  tare gate --interleave old=./runc-old new=./runc-new --worse 90% --ops create --rounds 8 --warmup 0",
		Args:    takes(1, 1000),
		RunE: func(c *cobra.Command, args []string) error {
			if !o.compares(args) {
				o.Targets = args
			}
			if err := set.Finish(c.Context()); err != nil {
				return err
			}
			if err := s.checkFormat(out.format, lifecycle.Name); err != nil {
				return err
			}
			return gate(c.Context(), s, o, args, out)
		},
	}
	set.AddFlags(c.Flags())
	flags := c.Flags()
	flags.StringVar(&o.metric, "metric", compare.Gated, "figures to gate, as a filter of tare compare")
	flags.BoolVar(&o.self, "self", false, "measure the first target against itself first, and refuse a margin below the noise of this machine; with records, measure the spread of the runs of BASE")
	flags.BoolVar(&o.interleave, "interleave", false, "measure two targets here in the same rounds; accepts the flags of tare lifecycle")
	flags.BoolVar(&o.unlike, "unlike", false, "also accept unlike records; different machines or definitions get no verdict")
	addBasis(flags, &o.control, &o.earlier)
	out.addRecord(flags)
	out.addForm(flags, instrument.List{})
	return c
}

// addBasis declares the flags for verdicts on single runs.
func addBasis(flags *pflag.FlagSet, control *string, earlier *[]string) {
	flags.StringVar(control, "control", "", "target by which single runs of both sides are normalized, round by round (default: floor or host)")
	flags.StringSliceVar(earlier, "earlier", nil, "earlier records of this machine, or their folder: the interval of single runs includes their spread between runs")
}

// gate decides on records, or on targets that it measures.
func gate(ctx context.Context, s *app, o *gateOptions, args []string, out outputFlags) error {
	if o.compares(args) {
		sides, err := s.sides(args)
		if err != nil {
			return err
		}
		if len(sides) != 2 {
			return fmt.Errorf("gate compares exactly two sides, got %d: give BASE and NEW, or files as NAME=FILE, where equal names are one side", len(sides))
		}
		if o.known, err = s.runs(o.earlier); err != nil {
			return err
		}
		if o.self {
			if err := o.again(ctx, s, &sides[0].Runs[0], out); err != nil {
				return err
			}
		}
		return s.decide(o, sides, "", out)
	}
	if o.interleave && len(args) != 2 {
		return errors.New("--interleave: give two targets, the old one first, such as old=./runc-old new=./runc-new")
	}
	if o.self {
		self := out
		if o.interleave && out.record != "" {
			self.record, out.record = numbered(out.record, 1), numbered(out.record, 2)
		}
		if err := gateSelf(ctx, s, o, args[0], self); err != nil || !o.interleave {
			return err
		}
	}
	run, err := measure(ctx, s, o.Options, args, out)
	if err != nil {
		return err
	}
	return s.decide(o, []compare.Side{{Name: "here", Runs: []compare.Run{run}}}, columns(args), out)
}

// columns returns a projection of two targets in the given order.
func columns(targets []string) string {
	old, _ := terms.SplitTarget(targets[0])
	new, _ := terms.SplitTarget(targets[1])
	return "target@(" + strconv.Quote(old) + " " + strconv.Quote(new) + ")"
}

// gateSelf measures a runtime against itself. The difference is the machine's noise, and a
// smaller margin would gate on noise.
func gateSelf(ctx context.Context, s *app, o *gateOptions, target string, out outputFlags) error {
	name, path := terms.SplitTarget(target)
	if path == "" {
		var err error
		if path, err = exec.LookPath(name); err != nil {
			return fmt.Errorf("--self: %s is not the command of an OCI runtime, which --self needs: %w; write a runtime as NAME=PATH", name, err)
		}
	}
	twins := []string{name + "=" + path, name + "-again=" + path}
	run, err := measure(ctx, s, o.Options, twins, out)
	if err != nil {
		return err
	}
	g, err := o.compare([]compare.Side{{Name: "here", Runs: []compare.Run{run}}}, columns(twins))
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "self: with %d rounds and %s, this machine resolves a margin of %s\n", o.Rounds, page.Amount(len(g.Figures), "figure"), page.Share(g.Floor))
	if !(g.Floor < o.worse) {
		return fmt.Errorf("--worse: %s is below the noise of this machine, on which %s differs from itself by up to %s with %d rounds; raise the margin, add rounds or gate fewer figures (--ops, --metric)",
			page.Share(o.worse), name, page.Share(g.Floor), o.Rounds)
	}
	return nil
}

// again measures the targets of a record several times. The results count as additional
// earlier records.
func (o *gateOptions) again(ctx context.Context, s *app, base *compare.Run, out outputFlags) error {
	l := lifecycle.Defaults()
	if err := instrument.ReadPlan(&base.Header, lifecycle.Name, &l); err != nil {
		return fmt.Errorf("--self: %w; give --earlier records instead", err)
	}
	l.Seed = 0
	var targets []string
	for _, t := range base.Targets {
		if t.Path != "" {
			t.Name += "=" + t.Path
		}
		targets = append(targets, t.Name)
	}
	for i := range selfRuns {
		one := out
		if out.record != "" {
			one.record = numbered(out.record, i+1)
		}
		run, err := measure(ctx, s, l, targets, one)
		if err != nil {
			return err
		}
		o.known = append(o.known, run)
	}
	return nil
}

// measure runs a lifecycle of targets and returns its result.
func measure(ctx context.Context, s *app, l lifecycle.Options, targets []string, out outputFlags) (compare.Run, error) {
	var kept []instrument.Judged
	l.Targets, out.keep, out.format = targets, &kept, "text"
	l.Baseline, _ = terms.SplitTarget(targets[0])
	err := s.perform(ctx, lifecycle.Name, &l, out)
	if failed, ok := errors.AsType[exit](err); err != nil && !(ok && failed.code == ExitFailed) || len(kept) == 0 {
		return compare.Run{}, err
	}
	return compare.NewRun(kept[0].Record, kept[0]), nil
}

func (o *gateOptions) compare(sides []compare.Side, col string) (*compare.Gate, error) {
	c, err := compare.New(sides, compare.Options{Col: col, Filter: o.metric, Unlike: o.unlike, Versions: true, Control: o.control, Earlier: o.known, Comparing: o.Comparing})
	if err != nil {
		return nil, err
	}
	return c.Gate(o.worse)
}

// decide prints the verdict and returns its exit code.
func (s *app) decide(o *gateOptions, sides []compare.Side, col string, out outputFlags) error {
	g, err := o.compare(sides, col)
	if err != nil {
		return err
	}
	if err := s.showPages(out, comparison("gate", g.Figures, g.Findings()), g.Page()); err != nil {
		return err
	}
	return ended(map[stat.Decision]int{stat.Passed: ExitDone, stat.Regressed: ExitRegressed, stat.NotDecided: ExitUndecided}[g.Decision])
}
