package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/bpflist"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	bpfrun "github.com/tare-bench/tare/internal/instrument/bpf/run"
)

// extendBPF adds the list subcommand.
func extendBPF(s *app, v *verb) { v.AddCommand(newBPFList(s)) }

func newBPFList(s *app) *cobra.Command {
	var choice bpf.Choice
	set := option.Of(&choice)
	var o bpflist.Options
	c := &cobra.Command{
		Use:   "list",
		Short: "List eBPF programs with their owners, CPU time and memory",
		Long: `List the loaded programs with their attachments, owning processes, pins and maps.
Over --interval it shows how often each program ran, the mean time of a run, and the
share of a core and of the node. Memory includes the program and its maps; a map that
several programs use counts once in the total.

Counts and times are the kernel's own statistics. They are enabled while tare measures
and cost about 20 ns per run of a program.

--kmesh, --name, --pin, --owner, --cgroup and --id select programs. If several are set,
a program must match all of them. It is an error if no loaded program matches.`,
		Example: "  tare bpf list --interval 100ms\n  tare bpf list --format json --interval 0",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := set.Finish(c.Context()); err != nil {
				return err
			}
			o.Filter = bpfrun.Filter(&choice)
			if err := o.Check(); err != nil {
				return err
			}
			err := bpflist.Run(c.Context(), s.Out, o)
			if c.Context().Err() != nil {
				return exit{ExitInterrupted}
			}
			return err
		},
	}
	set.AddFlags(c.Flags())
	c.Flags().DurationVar(&o.Interval, "interval", time.Second, "how long to measure; 0: no statistics")
	formatFlag(c, &o.Format, bpflist.Formats...)
	c.Flags().BoolVar(&o.Watch, "watch", false, "repeat until Ctrl-C; on a terminal < and > change the sort column, r reverses the order, arrows scroll, q quits")
	c.Flags().StringVar(&o.Selection.Sort, "sort", "", "sort programs by this column (default id, with --watch core)")
	c.Flags().BoolVar(&o.Selection.Reverse, "reverse", false, "reverse the sort order")
	c.Flags().StringSliceVar(&o.Selection.Columns, "columns", nil, "show only these columns of text output: "+strings.Join(bpflist.ColumnNames(), ", "))
	return c
}
