package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/plan"
)

func newRun(s Streams) *cobra.Command {
	var flags runFlags
	var out outputFlags
	c := &cobra.Command{
		Use:   "run PLAN",
		Short: "Do what a plan file says",
		Long: `Do what a plan file says, in its order. Flags override the file. A mistake in
the file is reported with file, line and column before anything is done.`,
		Example: "  tare run plan.yaml --rounds 6",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := plan.Load(args[0])
			if err != nil {
				return err
			}
			for i := range p.Measure {
				if err := flags.override(c.Context(), c.Flags(), &p.Measure[i]); err != nil {
					return err
				}
			}
			var failed error
			for i, m := range p.Measure {
				each := out
				if out.record != "" && len(p.Measure) > 1 {
					each.record = numbered(out.record, i+1)
				}
				err := perform(c.Context(), s, m, each)
				var code exit
				var missing *notHere
				switch {
				case errors.As(err, &missing) && len(p.Measure) > 1: // the others go on
					fmt.Fprintf(s.Err, "tare: measure %d of %d: nothing of it can be weighed here\n%s\n", i+1, len(p.Measure), cleanLines(missing.Error()))
					failed = errors.Join(failed, exit{ExitUsage})
				case errors.As(err, &code) && code.code == ExitFailed:
					failed = errors.Join(code, failed) // operations that failed weigh more
				case err != nil:
					return err
				}
			}
			return failed
		},
	}
	flags.add(c.Flags())
	out.add(c.Flags())
	return c
}

// runFlags override a plan: those of a lifecycle, of which every other measure
// takes what it has too, and those that only storage has.
type runFlags struct {
	lifecycleFlags
	storage storageFlags
}

func (f *runFlags) add(set *pflag.FlagSet) {
	f.lifecycleFlags.add(set)
	f.storage.addScale(set)
}

// override puts the flags that were given into a measure of a plan.
func (f *runFlags) override(ctx context.Context, set *pflag.FlagSet, m *plan.Measure) error {
	switch {
	case m.Overhead != nil:
		same := overheadFlags{rounds: f.rounds, budget: f.budget, timeout: f.timeout, seed: f.seed, missing: f.missing, engines: f.engines}
		return same.apply(ctx, set, m.Overhead, false)
	case m.Storage != nil:
		same := f.storage
		same.rounds, same.budget, same.timeout, same.seed, same.missing, same.engines = f.rounds, f.budget, f.timeout, f.seed, f.missing, f.engines
		return same.apply(ctx, set, m.Storage, false)
	case m.BPF != nil:
		same := bpfFlags{rounds: f.rounds, budget: f.budget, timeout: f.timeout, seed: f.seed}
		if set.Changed("scale") {
			if err := scaled(m.BPF, f.storage.scale); err != nil {
				return err
			}
		}
		return same.apply(set, m.BPF)
	case m.Startup != nil:
		same := startupFlags{rounds: f.rounds, warmup: f.warmup, budget: f.budget, timeout: f.timeout, seed: f.seed, missing: f.missing, engines: f.engines}
		return same.apply(ctx, set, m.Startup, false)
	}
	return f.apply(ctx, set, m.Lifecycle, false)
}

// perform does one measure of a plan.
func perform(ctx context.Context, s Streams, m plan.Measure, out outputFlags) error {
	switch {
	case m.Overhead != nil:
		return weighOverhead(ctx, s, *m.Overhead, out)
	case m.Storage != nil:
		return weighStorage(ctx, s, *m.Storage, out)
	case m.BPF != nil:
		return weighBPF(ctx, s, *m.BPF, out)
	case m.Startup != nil:
		return weighStartup(ctx, s, *m.Startup, out)
	}
	return weighLifecycle(ctx, s, *m.Lifecycle, out)
}

// numbered puts a number before a record's extension.
func numbered(path string, n int) string {
	dir, base := filepath.Split(path)
	name, ext, _ := strings.Cut(base, ".")
	if ext != "" {
		ext = "." + ext
	}
	return filepath.Join(dir, fmt.Sprintf("%s-%d%s", name, n, ext))
}
