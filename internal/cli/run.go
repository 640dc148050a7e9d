package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/plan"
)

func newRun(s *app) *cobra.Command {
	var out outputFlags
	var given *option.Given
	c := &cobra.Command{
		Use:   "run PLAN",
		Short: "Do what a plan file says",
		Long: `Do what a plan file says, in its order. Flags override the file, in every measure
that has such an option; one that no measure of the plan has is refused. A mistake
in the file is reported with file, line and column before anything is done.`,
		Example: "  tare run plan.yaml --rounds 6",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := plan.Load(args[0], s.instruments)
			if err != nil {
				return err
			}
			if err := override(c.Context(), s, given, p.Measure); err != nil {
				return err
			}
			return performAll(c.Context(), s, p.Measure, out)
		},
	}
	out.addRecord(c.Flags())
	out.addForm(c.Flags(), s.instruments)
	var sets []*option.Set
	for _, i := range s.instruments {
		sets = append(sets, option.Of(i.New()))
	}
	given = option.Collect(c.Flags(), sets...)
	return c
}

// override lays the flags over every measure that has such options. A flag that
// only some have is told of; one that none has would be passed over in silence,
// and another measurement be made than the one that was asked for.
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
			return option.WrongFlag(flag, "no measure of the plan has use for it%s", takenBy(measures))
		case len(without) > 0:
			fmt.Fprintf(s.Err, "--%s: for %s; not for %s\n", flag, strings.Join(with, ", "), strings.Join(without, ", "))
		}
	}
	for _, m := range measures {
		if err := given.Lay(m.Set); err != nil {
			return err
		}
		if err := m.Set.Finish(ctx); err != nil {
			return err
		}
	}
	return nil
}

// takenBy says which flags each kind of measure in a plan takes.
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

// performAll does one measure of a plan after the other.
func performAll(ctx context.Context, s *app, measures []plan.Measure, out outputFlags) error {
	for _, m := range measures {
		if err := s.checkFormat(out.format, m.Name); err != nil {
			return err
		}
	}
	var failed error
	for i, m := range measures {
		each := out
		if out.record != "" && len(measures) > 1 {
			each.record = numbered(out.record, i+1)
		}
		err := s.performers[m.Name].perform(ctx, s, m.Options, each)
		var code exit
		var missing *notHere
		switch {
		case errors.As(err, &missing) && len(measures) > 1: // the others go on
			fmt.Fprintf(s.Err, "tare: measure %d of %d: nothing of it can be weighed here\n%s\n", i+1, len(measures), cleanLines(missing.Error()))
			failed = errors.Join(failed, exit{ExitUsage})
		case errors.As(err, &code) && code.code == ExitFailed:
			failed = errors.Join(code, failed) // operations that failed weigh more
		case err != nil:
			return err
		}
	}
	return failed
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
