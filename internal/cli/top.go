package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/top"
)

// The bounds of --interval. Below, the reading itself would be what is seen.
const (
	shortestLook = 100 * time.Millisecond
	longestLook  = time.Hour
)

func newTop(s *app) *cobra.Command {
	o := top.Options{Interval: time.Second}
	var order, format string
	c := &cobra.Command{
		Use:   "top",
		Short: "Show what the containers and pods of this machine use, by sandbox and role",
		Long: `Show every container and pod of this machine with what it uses, live: CPU, memory
that its own cgroups are charged for (without page cache), of it what is outside
the pod's cgroup, memory of processes beside it that is charged to others (shim,
monitor, VMM), page cache, I/O, processes, and how full its limit is. No engine
is asked, and no run of tare need be under way.

Live: q ends; m c o p i n sort by memory, CPU, overhead, page cache, I/O, name;
r turns the order round; / filters; Enter shows a sandbox's roles and cgroups;
space holds the view; + and - change the interval; h helps.
Where the output is no terminal, or TERM is dumb or unset, a block is printed
every interval.

CPU is in percent of one CPU; K, M and G are powers of 1024; "?" is not known.`,
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
			o.JSON = format == "json"
			err = top.Run(c.Context(), s.Out, o)
			if err != nil && c.Context().Err() != nil {
				return exit{ExitInterrupted}
			}
			return err
		},
	}
	f := c.Flags()
	f.DurationVar(&o.Interval, "interval", o.Interval, "time between two looks, also the two of --once")
	f.StringVar(&order, "sort", string(top.SortMemory), "memory, cpu, overhead, cache, io or name")
	f.BoolVar(&o.Reverse, "reverse", false, "turn the order round")
	f.StringVar(&o.Filter, "filter", "", "only sandboxes with this text in a name, an id, a cgroup's path or a process's name")
	f.StringVar(&o.Engine, "engine", "", "only those of this engine or isolation: docker, podman, containerd, cri-o, isula, kubernetes, oci, kata, gvisor, vm; or both, as docker/kata")
	f.BoolVar(&o.Once, "once", false, "look twice, an interval apart, print, and end")
	formatFlag(c, &format, "text", "json")
	f.BoolVar(&o.PSS, "pss", false, "read the share of memory (PSS) of processes beside sandboxes, which costs the kernel a walk through their page tables; --once always does")
	return c
}
