package cli

import (
	"math"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/core/compare"
	"github.com/tare-bench/tare/internal/instrument"
)

func newHistory(s *app) *cobra.Command {
	var out outputFlags
	var filter, since string
	c := &cobra.Command{
		Use:   "history DIR|RECORD...",
		Short: "Find the commits at which figures changed",
		Long: `Order the records of many commits, treat each figure as a series, and find where its
level changed: between which records, by how much, and whether it became worse. If
nothing changed, fewer than 2 % of histories report a change.

tare label RECORD commit=… sets the point of a record, and several records of one commit
are one point. If all labels are numbers, as from git rev-list --count HEAD, they are the
order; otherwise the time of the records is. Records of different machines, kernels,
settings, options or definitions are separate series. So are versions of the measured
runtime, unless all records have the label commit. In a folder all records below it are
read; other files and copies of a run are skipped and reported.

Exit status: 0 no regression found, which includes series with too few points;
3 a regression at or after --since.`,
		Example: "  tare history run.jsonl\n  tare history run.jsonl --filter 'quantity:latency op:create' --format md",
		Args:    takes(1, math.MaxInt),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.checkFormat(out.format, ""); err != nil {
				return err
			}
			runs, err := s.runs(args)
			if err != nil {
				return err
			}
			h, err := compare.NewHistory(runs, filter, since)
			if err != nil {
				return err
			}
			if err := s.showPages(out, comparison("history", h.Figures(), h.Findings()), h.Page()); err != nil || !h.Worse() {
				return err
			}
			return ended(ExitRegressed)
		},
	}
	flags := c.Flags()
	flags.StringVar(&filter, "filter", compare.Headline, "figures to check, as in tare compare; with more figures, a change must be larger to be found")
	flags.StringVar(&since, "since", "", "first point whose regression sets exit status 3 (default: the first point)")
	out.addForm(flags, instrument.List{})
	return c
}
