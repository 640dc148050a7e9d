package bpf

import "github.com/tare-bench/tare/internal/core/figure"

// Quantities lists the figures of eBPF programs. Figures of a load have the labels
// connections, clients, heavy, services and limit.
var Quantities = figure.Catalogue{Experiment: Name, Quantities: []figure.Quantity{
	{Name: "requests", Unit: figure.PerSecond, Better: figure.More, Headline: true, Is: "answers over time"},
	{Name: "latency", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Labels: "quantile", Is: "of answers, the median over the rounds", More: ": `p50`, `p90`, `p99`, `p99.9`"},
	{Name: "cpu", Unit: figure.CPUs, Better: figure.Less, Headline: true, Labels: "role", Is: "of the load and of the programs", More: ": of its `client` and `server`, and of the programs together (`bpf`)"},
	{Name: "cpu-share", Unit: figure.Ratio, Better: figure.Less, Headline: true, Labels: "role", Is: "share of all the node's CPUs", More: ", of `client` and `bpf`"},
	{Name: "node-busy", Unit: figure.Ratio, Better: figure.Less, Is: "busy share of the node"},
	{Name: "limit-usage", Unit: figure.Ratio, Is: "usage of the clients' cgroup as a share of its limit", More: "; absent without one"},
	{Name: "limit-throttled", Unit: figure.Ratio, Better: figure.Less, Is: "throttled share of the quota's periods"},
	{Name: "bpf-time-per-request", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "run time of the programs per request"},
	{Name: "requests-with-statistics-ratio", Unit: figure.Ratio, Better: figure.More, Is: "requests with the kernel's statistics ÷ without", More: "; its reasons say whether they differ"},
	{Name: "request-errors", Unit: figure.Count, Better: figure.Less, Is: "requests without a 2xx answer, in all rounds"},
	{Name: "send-lag", Unit: figure.Nanoseconds, Better: figure.Less, Is: "open loop only: delay between due and sent, 99th percentile of the worst round"},
	{Name: "requests-not-sent", Unit: figure.Count, Better: figure.Less, Is: "due in an open loop and never sent"},
	{Name: "program-runs", Unit: figure.PerSecond, Labels: "program, id", Is: "runs of one program"},
	{Name: "program-run-time", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "program, id", Is: "of one run"},
	{Name: "program-cpu", Unit: figure.CPUs, Better: figure.Less, Labels: "program, id", Is: "CPU of one program"},
	{Name: "program-runs-per-request", Unit: figure.Ratio, Better: figure.Less, Labels: "program, id", Is: "runs of one program ÷ requests"},
	{Name: "program-misses", Unit: figure.Count, Better: figure.Less, Labels: "program, id", Is: "runs that the kernel skipped"},
	{Name: "quota-usage", Unit: figure.CPUs, Is: "tare bpf quota only: usage of the clients' cgroup, by its own accounting", More: "; the verdict of all is whether the programs' time counts against the limit, and the reasons why"},
	{Name: "quota-usage-by-tick", Unit: figure.CPUs, Is: "the same, by timer ticks"},
	{Name: "quota-bpf", Unit: figure.CPUs, Better: figure.Less, Is: "the programs' own run time"},
	{Name: "quota-workload", Unit: figure.CPUs, Is: "usage minus the programs' run time"},
	{Name: "quota-throttled", Unit: figure.Ratio, Better: figure.Less, Is: "of the quota's periods"},
	{Name: "quota-requests", Unit: figure.PerSecond, Better: figure.More, Is: "answers over time"},
	{Name: "memory", Unit: figure.Bytes, Better: figure.Less, Labels: "of, services, when", Is: "of programs and maps; each map once, however many programs use it", More: "; `of` `programs`, `maps`, both; `under load` where it was read then"},
	{Name: "program-memory", Unit: figure.Bytes, Better: figure.Less, Labels: "program, id, services", Is: "of one program's instructions"},
	{Name: "program-instructions", Unit: figure.Count, Better: figure.Less, Labels: "program, id", Is: "of one program, after the verifier"},
	{Name: "program-machine-code", Unit: figure.Bytes, Better: figure.Less, Labels: "program, id", Is: "size of the JIT-compiled program"},
	{Name: "map-memory", Unit: figure.Bytes, Better: figure.Less, Labels: "program, id, map, map-id, services", Is: "of one map, including inner maps"},
}}
