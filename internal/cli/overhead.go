package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tare-bench/tare/internal/core/run"
	overheadrun "github.com/tare-bench/tare/internal/instrument/overhead/run"
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/report"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/hosttools"
	"github.com/tare-bench/tare/record"
	"golang.org/x/sys/unix"
)

// overheadFlags say what to weigh and how.
type overheadFlags struct {
	phases    string
	sandboxes string
	limit     string
	check     string
	rounds    int
	hold      time.Duration
	interval  time.Duration
	settle    time.Duration
	budget    time.Duration
	timeout   time.Duration
	patience  time.Duration
	seed      uint64
	missing   string
	engines   engineFlags
}

func (f *overheadFlags) add(set *pflag.FlagSet) {
	d := plan.DefaultsOfOverhead()
	set.StringVar(&f.phases, "phases", strings.Join(d.Phases, ","), "what sandboxes do while they are watched: idle; 10M, 1G (fio writes a file of that size at random); hold 64MiB, spin 0.5cpu (to calibrate)")
	set.StringVar(&f.sandboxes, "sandboxes", joinInts(d.Sandboxes), "counts to hold idle, for the cost of one more; phases with a load run at the smallest")
	set.StringVar(&f.limit, "limit", "", "limits of every container: cpu=1,memory=1Gi,pids=100 (default: none)")
	set.StringVar(&f.check, "check", "", "an overhead.podFixed to check: 250m,160Mi")
	set.IntVar(&f.rounds, "rounds", d.Rounds, "rounds, each visiting every target once")
	set.DurationVar(&f.hold, "hold", d.Hold, "how long a phase is watched; one with fio is watched until that ends")
	set.DurationVar(&f.interval, "interval", d.Interval, "between samples")
	set.DurationVar(&f.settle, "settle", d.Settle, "at most, until the node's memory stops changing before a reading")
	set.DurationVar(&f.budget, "budget", d.Budget, "begin no new visit after this time")
	set.DurationVar(&f.timeout, "timeout", d.Timeout, "for one operation on one sandbox")
	set.DurationVar(&f.patience, "patience", d.Patience, "for fio to end")
	set.Uint64Var(&f.seed, "seed", 0, "seed of the order of targets in each round (default: random, and recorded)")
	set.StringVar(&f.missing, "missing", string(d.Missing), "what to do about a named target that cannot be weighed here: fail, or skip it and weigh the others")
	f.engines.add(set)
}

func joinInts(all []int) string {
	text := make([]string, len(all))
	for i, n := range all {
		text[i] = fmt.Sprint(n)
	}
	return strings.Join(text, ",")
}

// apply puts the flags that were given into a plan.
func (f *overheadFlags) apply(ctx context.Context, set *pflag.FlagSet, o *plan.Overhead, add bool) error {
	var err error
	if set.Changed("phases") {
		if o.Phases, err = plan.ParsePhases(f.phases); err != nil {
			return fmt.Errorf("--phases: %w", err)
		}
	}
	if set.Changed("sandboxes") {
		if o.Sandboxes, err = plan.ParseSandboxes(f.sandboxes); err != nil {
			return fmt.Errorf("--sandboxes: %w", err)
		}
	}
	if set.Changed("limit") {
		if o.Limits, err = plan.ParseLimit(f.limit); err != nil {
			return fmt.Errorf("--limit: %w", err)
		}
	}
	if set.Changed("check") {
		fixed, err := plan.ParsePodFixed(f.check)
		if err != nil {
			return fmt.Errorf("--check: %w", err)
		}
		o.Check = &fixed
	}
	if set.Changed("rounds") {
		o.Rounds = f.rounds
	}
	if set.Changed("seed") {
		o.Seed = f.seed
	}
	if set.Changed("missing") {
		o.Missing = plan.Missing(f.missing)
	}
	for _, d := range []struct {
		name     string
		to       *time.Duration
		duration time.Duration
	}{{"hold", &o.Hold, f.hold}, {"interval", &o.Interval, f.interval}, {"settle", &o.Settle, f.settle}, {"budget", &o.Budget, f.budget}, {"timeout", &o.Timeout, f.timeout}, {"patience", &o.Patience, f.patience}} {
		if set.Changed(d.name) {
			*d.to = d.duration
		}
	}
	if err := f.engines.apply(ctx, set, overheadSelection(o), add); err != nil {
		return err
	}
	o.Phases = plan.WithIdle(o.Phases)
	if err := o.Validate(); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

func overheadSelection(o *plan.Overhead) selection {
	return selection{&o.Targets, o.Missing, &o.Via, &o.Engines, nil}
}

func newOverhead(s Streams) *cobra.Command {
	var flags overheadFlags
	var out outputFlags
	c := &cobra.Command{
		Use:   "overhead [TARGET...]",
		Short: "Weigh whose memory and CPU a sandbox uses, and which cgroup is charged",
		Long: `Start sandboxes on each target, watch them idle and under load, and close the
books: memory and CPU by role (workload, pause, shim, monitor, VMM, virtiofsd,
sentry, gofer, daemon, kernel, page cache), by cgroup, what the engine itself
reports beside the truth, and the residual, which is what the node's memory
changed by and no role explains.

Counts of sandboxes give the cost of one more, with an interval, and how many
fit on this node; from all of it comes a RuntimeClass with overhead.podFixed.
--check tells of an existing one whether it is enough, and in which phase it is
not.

Without TARGET, everything that can be weighed here is. Targets are those of
tare lifecycle. fio is carried into the containers from this machine, so that
all sides run the same version; it has to be installed for phases such as 1G.`,
		Example: `  tare overhead runc crun
  tare overhead runc containerd/runc --phases idle,10M,100M --limit cpu=1,memory=1Gi
  tare overhead runc --sandboxes 1 --phases 'hold 256MiB,spin 0.5cpu' --explain
  tare overhead docker/runc --sandboxes 1 --check 250m,160Mi`,
		RunE: func(c *cobra.Command, args []string) error {
			o := plan.DefaultsOfOverhead()
			o.Targets = args
			if err := flags.apply(c.Context(), c.Flags(), &o, true); err != nil {
				return err
			}
			return weighOverhead(c.Context(), s, o, out)
		},
	}
	flags.add(c.Flags())
	out.addRecord(c.Flags())
	out.addForm(c.Flags())
	return c
}

// weighOverhead performs an overhead plan.
func weighOverhead(ctx context.Context, s Streams, p plan.Overhead, out outputFlags) error {
	var options overheadrun.Options
	var phases []plan.Phase
	return weigh(ctx, s, &out, weighing{
		experiment: "overhead", engines: p.Engines,
		targets: func() (targets []subject.Target, skipped []record.Finding, err error) {
			if phases, err = p.Resolved(); err != nil {
				return nil, nil, err
			}
			if err := carryFio(ctx, phases, &options); err != nil {
				return nil, nil, err
			}
			if options.Meter, err = snapshot.New(); err != nil {
				return nil, nil, err
			}
			return choose(ctx, s, overheadSelection(&p), out.quiet)
		},
		run: func(o *session) (_ *record.Record, _ run.Judgement, err error) {
			options.Plan, options.Options, options.Targets = p, o.options, o.targets
			if options.Workload.Volume, err = loadFolder(o, phases); err != nil {
				return nil, nil, err
			}
			options.Free = func() (int64, error) { return freeBelow(options.Workload.Volume) }
			return outcome(overheadrun.Run(ctx, options))
		},
	})
}

// carryFio finds fio if a phase needs it.
func carryFio(ctx context.Context, phases []plan.Phase, o *overheadrun.Options) error {
	if !slices.ContainsFunc(phases, func(p plan.Phase) bool { return p.Kind == plan.PhaseFio }) {
		return nil
	}
	fio, err := hosttools.Fio(ctx)
	if err != nil {
		return err
	}
	o.Workload.Files, o.FioPath, o.FioVersion = fio.Files, fio.Path, fio.Version
	return nil
}

// loadFolder makes the folder below which every sandbox has one of its own to write
// to, if a phase writes.
func loadFolder(o *session, phases []plan.Phase) (string, error) {
	if !slices.ContainsFunc(phases, func(p plan.Phase) bool { return p.Kind == plan.PhaseFio }) {
		return "", nil
	}
	dir, _, err := o.run.Dirs("-volume")
	return dir, err
}

func freeBelow(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("ask for the free space of %s: %w", filepath.Base(dir), os.NewSyscallError("statfs", err))
	}
	return int64(st.Bavail) * st.Bsize, nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// showOverhead prints the report of a record and returns the exit code it calls
// for.
func showOverhead(s Streams, format report.Format, rec *record.Record, out outputFlags) (int, error) {
	o, err := judge.OverheadOf(rec)
	if err != nil {
		return 0, err
	}
	if err := report.Overhead(s.Out, format, rec, o, reportOptions(s, out)); err != nil {
		return 0, fmt.Errorf("write the report: %w", err)
	}
	return codeOf(o.Failed, o.Findings), nil
}
