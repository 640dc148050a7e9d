package command

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/workspace"
)

func newClean(s Streams) *cobra.Command {
	var dryRun bool
	var format string
	c := &cobra.Command{
		Use:   "clean",
		Short: "Remove what interrupted runs left, and nothing else",
		Long: `Find what runs that were killed left behind: containers and their processes,
bundles, state, cgroups, mounts, each by the run's id, and remove it. Runs that
are under way are left alone.`,
		Example: "  tare clean --dry-run\n  tare clean",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if format != "text" && format != "json" {
				return fmt.Errorf("--format: %q is not a format: text or json", format)
			}
			left, live, err := workspace.Leftovers(workspace.DefaultRoots())
			if err != nil {
				return err
			}
			errs := make([]error, 0, len(left))
			for i := range left {
				if !dryRun {
					errs = append(errs, left[i].Remove())
				}
			}
			if err := printLeftovers(s, format, left, live, dryRun); err != nil {
				return err
			}
			return errors.Join(errs...)
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be removed")
	c.Flags().StringVar(&format, "format", "text", "text or json")
	return c
}

func printLeftovers(s Streams, format string, left []workspace.Leftover, live []string, dryRun bool) error {
	if format == "json" {
		if left == nil {
			left = []workspace.Leftover{}
		}
		if live == nil {
			live = []string{}
		}
		e := json.NewEncoder(s.Out)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"dry_run": dryRun, "left_behind": left, "under_way": live})
	}
	for _, id := range live {
		fmt.Fprintf(s.Out, "run %s is under way and left alone\n", id)
	}
	if len(left) == 0 {
		_, err := fmt.Fprintln(s.Out, "nothing was left behind")
		return err
	}
	verb := "removed"
	if dryRun {
		verb = "would remove"
	}
	for _, l := range left {
		fmt.Fprintf(s.Out, "run %s: %s\n", l.RunID, verb)
		for _, pid := range l.Processes {
			fmt.Fprintf(s.Out, "  process %d\n", pid)
		}
		for _, m := range l.Mounts {
			fmt.Fprintf(s.Out, "  mount %s\n", term.Clean(m))
		}
		for _, g := range l.Cgroups {
			fmt.Fprintf(s.Out, "  cgroup %s\n", term.Clean(g))
		}
		for _, f := range l.Folders {
			fmt.Fprintf(s.Out, "  folder %s\n", term.Clean(f))
		}
	}
	return nil
}
