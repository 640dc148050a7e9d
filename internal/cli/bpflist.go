package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/bpflist"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	bpfrun "github.com/tare-bench/tare/internal/instrument/bpf/run"
)

func newBPFList(s *app) *cobra.Command {
	var choice bpf.Choice
	set := option.Of(&choice)
	var interval time.Duration
	var format string
	var watch bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List eBPF programs: whose they are, what they cost, what they occupy",
		Long: `List the loaded programs with what they are attached to, the processes that hold
them, their pins and maps, and over --interval how often they ran, how long one run
took, and which part of a core and of the node that is. Memory is that of the program
and of its maps; a map that several use counts once in the total.

Counts and times are the kernel's own statistics, which are on while tare looks and
cost some 20 ns for each run of each program.

Programs are chosen by --kmesh, --name, --pin, --owner, --cgroup and --id; of several all
have to hold. It is an error where none is loaded that was chosen.`,
		Example: "  tare bpf list --interval 100ms\n  tare bpf list --format json --interval 0",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := set.Finish(c.Context()); err != nil {
				return err
			}
			o := bpflist.Options{
				Filter:   bpfrun.Filter(&choice),
				Interval: interval, Format: format, Watch: watch,
			}
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
	c.Flags().DurationVar(&interval, "interval", time.Second, "how long is looked; 0: no statistics")
	formatFlag(c, &format, bpflist.Formats...)
	c.Flags().BoolVar(&watch, "watch", false, "again and again, until Ctrl-C")
	return c
}
