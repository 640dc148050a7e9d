package bpf

import (
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
)

// Instrument registers the bpf commands with the rest of tare.
var Instrument = instrument.Instrument{
	Name:  Name,
	Help:  "The cost of eBPF programs, and which CPU limit pays for it.",
	Short: "Measure the cost of eBPF programs under load, and which CPU limit pays for it",
	Long: `Show the loaded eBPF programs, their owners and their cost: CPU time as a share of a
core and of the node, and memory with each map counted once, idle and under HTTP
load. quota shows whether their time counts against the CPU limit of the workload
that they run for.

--kmesh, --name, --pin, --owner, --cgroup and --id select loaded programs, such as
those of Kmesh, Cilium or systemd. --datapath reference loads tare's own programs,
a service lookup at connect and an observer of connection events, attached to a
cgroup of tare's own. quota uses them if no programs are selected; load and memory
then list the loaded programs.`,
	Example: `  tare bpf list --interval 100ms
  tare bpf load --datapath reference -c 10 -t 200ms --idle 100ms --rounds 1`,
	New: func() option.Options { o := DefaultsOfLoad(); return &o },
	Modes: []instrument.Mode{
		{
			Name:  "load",
			Short: "Measure eBPF programs while connections are made",
			Long: `Make HTTP load with fortio at each number of connections, and measure the selected
programs: number of runs, time of a run, CPU time as a share of a core and of the
node, and ns per request. The report also shows the CPU time of client, server and
node, and the cost of the kernel's BPF statistics, from the same load without them.

The load goes to tare's own server on loopback, or to --url.`,
			Example: `  tare bpf load --datapath reference -c 10,20 -t 200ms --idle 100ms --rounds 1
  tare bpf load --datapath reference -c 10 --qps 200 --keepalive -t 200ms --idle 100ms --rounds 1`,
			New: func() option.Options { o := DefaultsOfLoad(); o.Datapath = ""; return &o },
		},
		{
			Name:  "quota",
			Short: "Show whether eBPF programs count against the workload's CPU limit",
			Long: `Put the clients of the load into a cgroup with a CPU limit, and make the programs
heavier step by step. The verdict is whether workload and programs together stay
within the limit. It uses the programs' run time, the cgroup's usage, ticks and
throttled periods, and the same load without a limit.`,
			Example: "  tare bpf quota --cpus 0.5 -c 10 -t 200ms --idle 100ms --heavy 0,100000 --rounds 1",
			New:     func() option.Options { o := DefaultsOfQuota(); return &o },
		},
		{
			Name:  "memory",
			Short: "Measure the memory of eBPF programs and maps as services grow",
			Long: `Put a number of services into the map, and measure the memory of programs and maps,
idle and under load. Each map counts once.`,
			Example: "  tare bpf memory --datapath reference --services 1,100 -c 10 -t 200ms --idle 100ms",
			New:     func() option.Options { o := DefaultsOfMemory(); o.Datapath = ""; return &o },
		},
	},
	Quantities: &Quantities,
	Judge:      instrument.Judging(Judge),
	Verbose:    "every program and map, the options, and the machine",
}
