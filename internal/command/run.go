package command

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/plan"
)

func newRun(s Streams) *cobra.Command {
	var flags lifecycleFlags
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
				if err := flags.apply(c.Context(), c.Flags(), p.Measure[i].Lifecycle, false); err != nil {
					return err
				}
			}
			var failed error
			for i, m := range p.Measure {
				each := out
				if out.record != "" && len(p.Measure) > 1 {
					each.record = numbered(out.record, i+1)
				}
				err := weigh(c.Context(), s, *m.Lifecycle, each)
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

// numbered puts a number before a record's extension.
func numbered(path string, n int) string {
	dir, base := filepath.Split(path)
	name, ext, _ := strings.Cut(base, ".")
	if ext != "" {
		ext = "." + ext
	}
	return filepath.Join(dir, fmt.Sprintf("%s-%d%s", name, n, ext))
}
