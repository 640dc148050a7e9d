package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// lifecycleFlags are the flags that say what to weigh. They are shared with
// tare run, where they override the plan file.
type lifecycleFlags struct {
	lanes     string
	rounds    int
	warmup    int
	precision string
	budget    time.Duration
	ops       string
	baseline  string
	seed      uint64
	timeout   time.Duration
	missing   string
	engines   engineFlags
}

func (f *lifecycleFlags) add(set *pflag.FlagSet) {
	d := plan.Defaults()
	set.StringVarP(&f.lanes, "lanes", "n", "1", "operations released at once; a list sweeps: 1,10,100")
	set.IntVar(&f.rounds, "rounds", d.Rounds, "measured rounds, each visiting every target once")
	set.IntVar(&f.warmup, "warmup", d.Warmup, "rounds before, not counted")
	set.StringVar(&f.precision, "precision", "", "add rounds until every 95 % interval is this narrow, e.g. 5%")
	set.DurationVar(&f.budget, "budget", d.Budget, "begin no new round after this time")
	set.StringVar(&f.ops, "ops", joinOps(d.Ops), "operations to weigh")
	set.StringVar(&f.baseline, "baseline", "", "target to compare the others with (default: the first runtime)")
	set.Uint64Var(&f.seed, "seed", 0, "seed of the order of targets in each round (default: random, and recorded)")
	set.DurationVar(&f.timeout, "timeout", d.Timeout, "for one operation on one lane")
	set.StringVar(&f.missing, "missing", string(d.Missing), "what to do about a named target that cannot be weighed here: fail, or skip it and weigh the others")
	f.engines.add(set)
}

func joinOps(ops []subject.Op) string {
	var names []string
	for _, op := range ops {
		names = append(names, string(op))
	}
	return strings.Join(names, ",")
}

// apply puts the flags that were given into a lifecycle. With add, the CRI
// endpoints among them become targets; a plan names its own.
func (f *lifecycleFlags) apply(ctx context.Context, set *pflag.FlagSet, l *plan.Lifecycle, add bool) error {
	var err error
	if set.Changed("lanes") {
		if l.Lanes, err = plan.ParseLanes(f.lanes); err != nil {
			return fmt.Errorf("--lanes: %w", err)
		}
	}
	if set.Changed("precision") {
		if l.Precision, err = plan.ParsePrecision(f.precision); err != nil {
			return fmt.Errorf("--precision: %w", err)
		}
	}
	if set.Changed("ops") {
		l.Ops = nil
		for name := range strings.SplitSeq(f.ops, ",") {
			op, err := setting.ParseOp(strings.TrimSpace(name))
			if err != nil {
				return fmt.Errorf("--ops: %w", err)
			}
			l.Ops = append(l.Ops, op)
		}
		// Tables show them in the order of a lifecycle, however they were named.
		slices.SortStableFunc(l.Ops, func(a, b subject.Op) int { return slices.Index(subject.Ops, a) - slices.Index(subject.Ops, b) })
	}
	if set.Changed("rounds") {
		l.Rounds = f.rounds
	}
	if set.Changed("warmup") {
		l.Warmup = f.warmup
	}
	if set.Changed("budget") {
		l.Budget = f.budget
	}
	if set.Changed("baseline") {
		l.Baseline = f.baseline
	}
	if set.Changed("seed") {
		l.Seed = f.seed
	}
	if set.Changed("timeout") {
		l.Timeout = f.timeout
	}
	if set.Changed("missing") {
		l.Missing = plan.Missing(f.missing)
	}
	if err := f.engines.apply(ctx, set, selectionOf(l), add); err != nil {
		return err
	}
	if err := l.Validate(); err != nil {
		if strings.HasPrefix(err.Error(), "targets: ") {
			return err
		}
		return fmt.Errorf("--%w", err)
	}
	return nil
}

func newLifecycle(s Streams) *cobra.Command {
	var flags lifecycleFlags
	var out outputFlags
	c := &cobra.Command{
		Use:   "lifecycle [TARGET...]",
		Short: "Time create, start, stop, rm and run, alone and many at once",
		Long: `Time create, start, stop, rm and run on each target, interleaved in rounds, and
print medians with 95 % intervals, comparisons with a baseline, and what to
mistrust. Without TARGET, everything that can be weighed here is.

A target is host, floor, an OCI runtime (runc, or NAME=PATH), or a runtime
behind an engine: docker/runc, podman/crun, containerd/runsc, isula/runc, and
cri+containerd/runc for a CRI endpoint, where pods are timed too (runp, stopp,
rmp). docker+cli/runc drives docker's command line, docker/runc its API;
podman/runc is podman's command line; its service is weighed as docker, with
--docker-host unix:///run/podman/podman.sock. An engine's name alone is its
default runtime.

With more than one lane, N operations are released together and the makespan
(release to last completion) is the figure; the lanes' own latencies, the skew
of their release and the effective parallelism are shown beside it.

The record holds every raw sample; tare report makes any report of it again.`,
		Example: `  tare lifecycle runc crun
  tare lifecycle host floor runc --rounds 6 -o run.jsonl
  tare lifecycle runc crun -n 1,10 --rounds 6 --ops create,start,stop,rm
  tare lifecycle runc mine=/usr/sbin/runc --ops run --precision 20% --budget 20s
  tare lifecycle floor crun --baseline floor --format md --quiet
  tare lifecycle runc docker/runc podman/runc containerd/runc --rounds 3 --missing skip
  tare lifecycle runc docker --via api,cli --ops run -n 1,10 --rounds 3 --missing skip
  tare lifecycle runc cri+containerd --ops runp,stopp,rmp,run --missing skip`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return find.Names(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(c *cobra.Command, args []string) error {
			l := plan.Defaults()
			l.Targets = args
			if err := flags.apply(c.Context(), c.Flags(), &l, true); err != nil {
				return err
			}
			return weighLifecycle(c.Context(), s, l, out)
		},
	}
	flags.add(c.Flags())
	out.add(c.Flags())
	return c
}
