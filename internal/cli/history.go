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
		Short: "Find where figures changed over the records of many commits",
		Long: `Put the records of many commits in order, each figure as a series, and find where its
level changed: after which record and before which, by how much, and whether it
became worse. Of a history in which nothing changed less than 2 % show any change.

Points are what tare label RECORD commit=… says, and several records of one commit
are one point. Where all are numbers, as git rev-list --count HEAD gives, they are
the order; else it is the records' time. Records of unlike machines, kernels,
settings, options or definitions are never one series; nor are versions of what
is weighed, unless all records have the label commit: then those are the question.
Of a folder all records below it are read; what is no record there is left out and
told of, and so is a copy of a run.

Exit status: 0 nothing is shown to have become worse, which a series of few points never is; 3 something did, at --since or behind it.`,
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
			if err := s.showPage(out, h.Page(), comparison("history", h.Figures(), h.Findings())); err != nil || !h.Worse() {
				return err
			}
			return ended(ExitRegressed)
		},
	}
	flags := c.Flags()
	flags.StringVar(&filter, "filter", compare.Headline, "which figures, as of tare compare; the more, the plainer a change has to be")
	flags.StringVar(&since, "since", "", "the first point at which what became worse makes the exit status 3 (default: the first of all)")
	out.addForm(flags, instrument.List{})
	return c
}
