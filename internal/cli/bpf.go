package cli

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/run"
	bpfrun "github.com/tare-bench/tare/internal/instrument/bpf/run"
	"github.com/tare-bench/tare/internal/instrument/bpf/run/datapath"
	"github.com/tare-bench/tare/internal/instrument/bpf/run/load"
	meterbpf "github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/plan"
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

// choiceFlags choose programs.
type choiceFlags struct {
	kmesh   bool
	names   []string
	pins    []string
	cgroups []string
	owners  []int
}

func (f *choiceFlags) add(set *pflag.FlagSet) {
	set.BoolVar(&f.kmesh, "kmesh", false, "the programs of Kmesh, known by their pins and maps")
	set.StringSliceVar(&f.names, "name", nil, "programs whose short or whole name is like this: cgroup_*")
	set.StringArrayVar(&f.pins, "pin", nil, "the program that is pinned here, or all in this folder")
	set.StringArrayVar(&f.cgroups, "cgroup", nil, "programs that are attached to this folder of cgroup v2")
	set.IntSliceVar(&f.owners, "owner", nil, "programs that this process holds")
}

// bpfFlags say what to measure.
type bpfFlags struct {
	choice      choiceFlags
	datapath    string
	url         string
	connections string
	qps         float64
	keepAlive   bool
	duration    time.Duration
	idle        time.Duration
	rounds      int
	cpus        string
	heavy       string
	services    string
	budget      time.Duration
	timeout     time.Duration
	seed        uint64
}

func (f *bpfFlags) add(set *pflag.FlagSet, d plan.BPF) {
	f.choice.add(set)
	set.StringVar(&f.datapath, "datapath", "", "reference: programs of tare's own (default, where none are chosen)")
	set.StringVar(&f.url, "url", "", "who is asked (default: a server of tare's own on loopback)")
	set.StringVarP(&f.connections, "connections", "c", joinInts(d.Connections), "at once; a list sweeps: 100,500,1000")
	set.Float64Var(&f.qps, "qps", d.QPS, "requests per second, due at fixed times and counted from then (open loop); 0: as many as it can")
	set.BoolVar(&f.keepAlive, "keepalive", d.KeepAlive, "many requests on one connection, instead of one each")
	set.DurationVarP(&f.duration, "time", "t", d.Duration, "of the load at each point")
	set.DurationVar(&f.idle, "idle", d.Idle, "how long is looked before each load, and after it")
	set.IntVar(&f.rounds, "rounds", d.Rounds, "times that every point is visited")
	set.StringVar(&f.cpus, "cpus", limitText(d), "limit of the load's clients: 1, 0.5, 250m, or 4x250m for four clients with a quarter each; 0: none")
	set.StringVar(&f.heavy, "heavy", joinInt64s(d.Heavy), "rounds of a loop in the reference datapath's programs; a list makes them heavier step by step")
	set.StringVar(&f.services, "services", joinInts(d.Services), "in the reference datapath's map; a list sweeps: 1,100,1000")
	set.DurationVar(&f.budget, "budget", d.Budget, "begin no new round after this time")
	set.DurationVar(&f.timeout, "timeout", d.Timeout, "for one request; what is not answered by then has failed")
	set.Uint64Var(&f.seed, "seed", 0, "seed of the order of points in each round (default: random, and recorded)")
}

func limitText(d plan.BPF) string {
	if d.CPUs == 0 {
		return "0"
	}
	return fmt.Sprintf("%g", d.CPUs)
}

func joinInt64s(all []int64) string {
	text := make([]int, len(all))
	for i, n := range all {
		text[i] = int(n)
	}
	return joinInts(text)
}

// apply puts the flags that were given into a plan.
func (f *bpfFlags) apply(set *pflag.FlagSet, b *plan.BPF) error {
	var err error
	c := &f.choice
	// An empty name chooses nothing, which is not the same as not to choose.
	if c.kmesh || slices.ContainsFunc([]string{"name", "pin", "cgroup", "owner"}, set.Changed) {
		b.Kmesh, b.Names, b.Pins, b.Cgroups, b.Owners = c.kmesh, c.names, c.pins, c.cgroups, c.owners
		b.Datapath = ""
	}
	if set.Changed("datapath") {
		b.Datapath = f.datapath
	}
	if b.Datapath == "" && !set.Changed("heavy") {
		b.Heavy = []int64{0} // only tare's own can be made heavier
	}
	if b.Datapath == "" && !set.Changed("services") {
		b.Services = []int{1} // and only in their map are services made
	}
	if set.Changed("connections") {
		if b.Connections, err = plan.ParseConnections(f.connections); err != nil {
			return fmt.Errorf("--connections: %s", bare(err))
		}
	}
	if set.Changed("cpus") {
		b.CPUs, b.Instances = 0, 1
		if f.cpus != "0" {
			if b.CPUs, b.Instances, err = plan.ParseCPUs(f.cpus); err != nil {
				return fmt.Errorf("--cpus: %s", bare(err))
			}
		}
	}
	if set.Changed("heavy") {
		if b.Heavy, err = plan.ParseHeavy(f.heavy); err != nil {
			return fmt.Errorf("--heavy: %s", bare(err))
		}
	}
	if set.Changed("services") {
		if b.Services, err = plan.ParseServices(f.services); err != nil {
			return fmt.Errorf("--services: %s", bare(err))
		}
	}
	f.applyPlain(set, b)
	return flagged(b.Validate())
}

// scaled is a plan whose loads take that part of their time.
func scaled(b *plan.BPF, text string) error {
	scale, err := plan.ParseScale(text)
	if err != nil {
		return fmt.Errorf("--scale: %w", err)
	}
	b.Duration = max(time.Duration(float64(b.Duration)*scale), plan.MinLoad)
	b.Idle = max(time.Duration(float64(b.Idle)*scale), plan.MinLoad)
	return nil
}

// applyPlain takes what needs no parsing.
func (f *bpfFlags) applyPlain(set *pflag.FlagSet, b *plan.BPF) {
	if set.Changed("url") {
		b.URL = f.url
	}
	if set.Changed("qps") {
		b.QPS = f.qps
	}
	if set.Changed("keepalive") {
		b.KeepAlive = f.keepAlive
	}
	if set.Changed("rounds") {
		b.Rounds = f.rounds
	}
	if set.Changed("seed") {
		b.Seed = f.seed
	}
	for _, d := range []struct {
		name string
		to   *time.Duration
		from time.Duration
	}{{"time", &b.Duration, f.duration}, {"idle", &b.Idle, f.idle}, {"budget", &b.Budget, f.budget}, {"timeout", &b.Timeout, f.timeout}} {
		if set.Changed(d.name) {
			*d.to = d.from
		}
	}
}

// newBPFMeasure is one of the three measurements.
func newBPFMeasure(s Streams, defaults func() plan.BPF, c *cobra.Command) *cobra.Command {
	var flags bpfFlags
	var out outputFlags
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		b := defaults()
		if err := flags.apply(c.Flags(), &b); err != nil {
			return err
		}
		return weighBPF(c.Context(), s, b, out)
	}
	flags.add(c.Flags(), defaults())
	out.addRecord(c.Flags())
	// Not those of every report: there are no roles to explain.
	c.Flags().StringVar(&out.format, "format", "text", "text, json, md or csv")
	c.Flags().BoolVarP(&out.verbose, "verbose", "v", false, "show everything: every program and map, what was asked for, and the machine")
	return c
}

func newBPFLoad(s Streams) *cobra.Command {
	return newBPFMeasure(s, plan.DefaultsOfBPF, &cobra.Command{
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
	return newBPFMeasure(s, plan.DefaultsOfQuota, &cobra.Command{
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
	return newBPFMeasure(s, plan.DefaultsOfMemory, &cobra.Command{
		Use:   "memory",
		Short: "Say what memory eBPF programs and maps take as services grow",
		Long: `Put so many services into the map, and say what programs and maps occupy, each map
once, idle and under load.`,
		Example: "  tare bpf memory --services 1,100 -c 10 -t 200ms --idle 100ms",
	})
}

// enoughFor checks that this machine can do the plan's loads: for a server on it, too,
// where it is here.
func enoughFor(ctx context.Context, p *plan.BPF) error {
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
func weighBPF(ctx context.Context, s Streams, p plan.BPF, out outputFlags) error {
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
		run: func(o *session) (*record.Record, run.Judgement, error) {
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
