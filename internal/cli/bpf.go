package cli

import (
	"context"
	"fmt"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	bpfrun "github.com/tare-bench/tare/internal/instrument/bpf/run"
	"github.com/tare-bench/tare/internal/instrument/bpf/run/datapath"
	"github.com/tare-bench/tare/internal/instrument/bpf/run/load"
	meterbpf "github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

func newBPF(s Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "bpf",
		Short: "Weigh eBPF programs: what they cost under load, and whose limit pays",
		Long: `Say which eBPF programs are loaded, whose they are, and what they cost: CPU time of
a core and of the node, memory, each map once; while nothing happens, and under a
load of HTTP. quota answers whether their time counts against the CPU limit of the
workload that they run for.

Programs that are loaded already (Kmesh's, Cilium's, systemd's, yours) are chosen
by --kmesh, --name, --pin, --owner or --cgroup. With none of these, load, quota
and memory bring programs of tare's own, the reference datapath: a service lookup
at connect, and a look at connections' events, attached to a cgroup of tare's own.`,
		Example: "  tare bpf list --interval 100ms\n  tare bpf load -c 10 -t 200ms --idle 100ms --rounds 1",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBPFList(s), newBPFLoad(s), newBPFQuota(s), newBPFMemory(s))
	return c
}

// newBPFMeasure is one of the three measurements.
func newBPFMeasure(s Streams, b bpf.Options, c *cobra.Command) *cobra.Command {
	var out outputFlags
	set := option.Of(&b)
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := set.Finish(c.Context()); err != nil {
			return err
		}
		return weighBPF(c.Context(), s, b, out)
	}
	set.AddFlags(c.Flags())
	out.addRecord(c.Flags())
	// Not those of every report: there are no roles to explain.
	c.Flags().StringVar(&out.format, "format", "text", "text, json, md or csv")
	c.Flags().BoolVarP(&out.verbose, "verbose", "v", false, "show everything: every program and map, what was asked for, and the machine")
	return c
}

func newBPFLoad(s Streams) *cobra.Command {
	return newBPFMeasure(s, bpf.DefaultsOfLoad(), &cobra.Command{
		Use:   "load",
		Short: "Weigh eBPF programs while connections are made",
		Long: `Make HTTP load with fortio at each number of connections, and say what the chosen
programs took meanwhile: runs, time of each, CPU time of a core and of the node,
ns for a request; what client, server and node used; and what the kernel's
statistics themselves cost, by the same load without them.

Load goes to a server of tare's own on loopback, or to the --url that is named.`,
		Example: "  tare bpf load -c 10,20 -t 200ms --idle 100ms --rounds 1\n  tare bpf load -c 10 --qps 200 --keepalive -t 200ms --idle 100ms --rounds 1",
	})
}

func newBPFQuota(s Streams) *cobra.Command {
	return newBPFMeasure(s, bpf.DefaultsOfQuota(), &cobra.Command{
		Use:   "quota",
		Short: "Say whether eBPF programs count against the workload's CPU limit",
		Long: `Put the load's clients into a cgroup with a CPU limit, make the programs heavier step
by step, and see whether workload and programs together stay within it: by the
programs' own run time, the cgroup's usage, its ticks and its throttled periods,
beside the same load without a limit.`,
		Example: "  tare bpf quota --cpus 0.5 -c 10 -t 200ms --idle 100ms --heavy 0,100000 --rounds 1",
	})
}

func newBPFMemory(s Streams) *cobra.Command {
	return newBPFMeasure(s, bpf.DefaultsOfMemory(), &cobra.Command{
		Use:   "memory",
		Short: "Say what memory eBPF programs and maps take as services grow",
		Long: `Put so many services into the map, and say what programs and maps occupy, each map
once, idle and under load.`,
		Example: "  tare bpf memory --services 1,100 -c 10 -t 200ms --idle 100ms",
	})
}

// enoughFor checks that this machine can do the plan's loads: for a server on it, too,
// where it is here.
func enoughFor(ctx context.Context, p *bpf.Options) error {
	local := true
	if p.URL != "" {
		at, err := load.Find(ctx, p.URL) // what is not found ends the run, whose record says why
		if local = err == nil; local {
			if local, err = here(at.Addr()); err != nil {
				return err
			}
		}
	}
	for _, n := range p.Connections {
		need := load.Need{Connections: n, KeepAlive: p.KeepAlive, Instances: p.Instances, Local: local}
		if err := need.Check(); err != nil {
			return fmt.Errorf("--connections: %w", err)
		}
	}
	return nil
}

// here tells whether an address is this machine's own.
func here(at netip.Addr) (bool, error) {
	if at.IsLoopback() || at.IsUnspecified() {
		return true, nil
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("ask for this machine's addresses: %w", err)
	}
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == at.WithZone("") {
			return true, nil
		}
	}
	return false, nil
}

// weighBPF performs a plan.
func weighBPF(ctx context.Context, s Streams, p bpf.Options, out outputFlags) error {
	var meter *meterbpf.Meter
	defer func() {
		if meter != nil {
			_ = meter.Close() // nothing was written
		}
	}()
	return weigh(ctx, s, &out, weighing{
		experiment: "bpf",
		targets: func() (_ []subject.Target, _ []record.Finding, err error) {
			if err = enoughFor(ctx, &p); err == nil {
				meter, err = meterbpf.Open()
			}
			return nil, nil, err
		},
		run: func(o *session) (*record.Record, instrument.Judgement, error) {
			return outcome(bpfrun.Run(ctx, bpfrun.Options{
				Plan: p, Options: o.options, Meter: meter, Node: nodeCPU, Own: procs.OwnCPU,
				Place:  func() (string, func() error, error) { return datapath.Place(o.run.ID) },
				Attach: func(d datapath.Options) (bpfrun.Datapath, error) { return datapath.Attach(d) },
				Serve: func(ctx context.Context) (bpfrun.Server, error) {
					return load.Serve(ctx, load.ServerOptions{Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0).String()})
				},
				Start: func(ctx context.Context, c load.ClientOptions) (bpfrun.Clients, error) { return load.Start(ctx, c) },
				Limit: func(place string, cpus float64, instances int) (bpfrun.Groups, error) {
					return bpfrun.MakeGroups(o.run.ID, place, cpus, instances)
				},
			}))
		},
	})
}

// nodeCPU is the busy time of all CPUs.
func nodeCPU() (busy int64, cpus int, err error) {
	c, err := nodestat.ReadCPU(machine.Root(""))
	if err != nil {
		return 0, 0, err
	}
	const tick = 10_000_000 // ns of USER_HZ
	cpus, err = machine.Root("").Online()
	return int64(c.Busy) * tick, cpus, err
}
