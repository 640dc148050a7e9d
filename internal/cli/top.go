package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/live"
	"github.com/tare-bench/tare/internal/top"
)

// Limits of --interval. With a shorter one, top would mostly measure itself.
const (
	shortestLook = 100 * time.Millisecond
	longestLook  = time.Hour
)

func newTop(s *app) *cobra.Command {
	o := top.Options{Interval: time.Second}
	var order, format string
	c := &cobra.Command{
		Use:   "top",
		Short: "Show the resource usage of containers and pods on this machine, by sandbox and role",
		Long: `Show the live resource usage of every container and pod on this machine. Columns: CPU;
memory charged to its own cgroups (without page cache) and the part outside of the pod's
cgroup; memory of its shim, monitor and VMM that is charged elsewhere; page cache, I/O,
processes, and how full its limit is. top needs neither an engine nor a run of tare.

Keys: q quits; m c o p i n sort by memory, CPU, overhead, page cache, I/O, name;
r reverses the order; / filters; Enter shows a sandbox's roles and cgroups;
space pauses; + and - change the interval; h shows help.
If the output is not a terminal, or TERM is dumb or unset, top prints a block per
interval.

CPU is in percent of one CPU; K, M and G are powers of 1024; "?" is unknown.`,
		Example: "  tare top\n  tare top --sort overhead --engine kata\n  tare top --once --format json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if o.Sort, err = top.ParseSort(order); err != nil {
				return fmt.Errorf("--sort: %w", err)
			}
			if o.Engine, err = top.ParseEngine(o.Engine); err != nil {
				return fmt.Errorf("--engine: %w", err)
			}
			if o.Interval < shortestLook || o.Interval > longestLook {
				return fmt.Errorf("--interval: %s is not between %s and %s", o.Interval, shortestLook, longestLook)
			}
			if err := live.CheckColumns(o.Columns, top.ColumnNames()); err != nil {
				return err
			}
			o.JSON = format == "json"
			err = top.Run(c.Context(), s.Out, o)
			if err != nil && c.Context().Err() != nil {
				return exit{ExitInterrupted}
			}
			return err
		},
	}
	f := c.Flags()
	f.DurationVar(&o.Interval, "interval", o.Interval, "time between two samples, also with --once")
	f.StringVar(&order, "sort", string(top.SortMemory), "memory, cpu, overhead, cache, io or name")
	f.StringSliceVar(&o.Columns, "columns", nil, "show only these columns: "+strings.Join(top.ColumnNames(), ", "))
	f.BoolVar(&o.Reverse, "reverse", false, "reverse the order")
	f.StringVar(&o.Filter, "filter", "", "only sandboxes with this text in a name, an id, a cgroup path or a process name")
	f.StringVar(&o.Engine, "engine", "", "only sandboxes of this engine or isolation: docker, podman, containerd, cri-o, isula, kubernetes, oci, kata, gvisor, vm; or both, as docker/kata")
	f.BoolVar(&o.Once, "once", false, "take two samples one interval apart, print, and exit")
	formatFlag(c, &format, "text", "json")
	f.BoolVar(&o.PSS, "pss", false, "read the proportional set size (PSS) of processes outside sandboxes, for which the kernel walks their page tables; always on with --once")
	return c
}
