package bpf

import (
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
)

// Instrument registers the bpf commands with the rest of tare.
var Instrument = instrument.Instrument{
	Name:  Name,
	Help:  "What eBPF programs cost, and whose limit pays.",
	Short: "Weigh eBPF programs: what they cost under load, and whose limit pays",
	Long: `Say which eBPF programs are loaded, whose they are, and what they cost: CPU time of
a core and of the node, memory, each map once; while nothing happens, and under a
load of HTTP. quota answers whether their time counts against the CPU limit of the
workload that they run for.

Programs that are loaded already (Kmesh's, Cilium's, systemd's, yours) are chosen
by --kmesh, --name, --pin, --owner, --cgroup or --id. --datapath reference brings
programs of tare's own: a service lookup at connect, and a look at connections'
events, attached to a cgroup of tare's own. quota does so where none are chosen;
load and memory then list what is loaded.`,
	Example: `  tare bpf list --interval 100ms
  tare bpf load --datapath reference -c 10 -t 200ms --idle 100ms --rounds 1`,
	New: func() option.Options { o := DefaultsOfLoad(); return &o },
	Modes: []instrument.Mode{
		{
			Name:  "load",
			Short: "Weigh eBPF programs while connections are made",
			Long: `Make HTTP load with fortio at each number of connections, and say what the chosen
programs took meanwhile: runs, time of each, CPU time of a core and of the node,
ns for a request; what client, server and node used; and what the kernel's
statistics themselves cost, by the same load without them.

Load goes to a server of tare's own on loopback, or to the --url that is named.`,
			Example: `  tare bpf load --datapath reference -c 10,20 -t 200ms --idle 100ms --rounds 1
  tare bpf load --datapath reference -c 10 --qps 200 --keepalive -t 200ms --idle 100ms --rounds 1`,
			New: func() option.Options { o := DefaultsOfLoad(); o.Datapath = ""; return &o },
		},
		{
			Name:  "quota",
			Short: "Say whether eBPF programs count against the workload's CPU limit",
			Long: `Put the load's clients into a cgroup with a CPU limit, make the programs heavier step
by step, and see whether workload and programs together stay within it: by the
programs' own run time, the cgroup's usage, its ticks and its throttled periods,
beside the same load without a limit.`,
			Example: "  tare bpf quota --cpus 0.5 -c 10 -t 200ms --idle 100ms --heavy 0,100000 --rounds 1",
			New:     func() option.Options { o := DefaultsOfQuota(); return &o },
		},
		{
			Name:  "memory",
			Short: "Say what memory eBPF programs and maps take as services grow",
			Long: `Put so many services into the map, and say what programs and maps occupy, each map
once, idle and under load.`,
			Example: "  tare bpf memory --datapath reference --services 1,100 -c 10 -t 200ms --idle 100ms",
			New:     func() option.Options { o := DefaultsOfMemory(); o.Datapath = ""; return &o },
		},
	},
	Quantities: &Quantities,
	Judge:      instrument.Judging(Judge),
	Verbose:    "every program and map, the options, and the machine",
}
