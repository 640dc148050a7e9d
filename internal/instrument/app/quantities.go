package app

import "github.com/tare-bench/tare/internal/core/figure"

// Quantities lists the figures of a service. Each has the label target, and neighbour
// if there was one.
var Quantities = figure.Catalogue{Experiment: Name, Quantities: []figure.Quantity{
	{Name: "throughput", Unit: figure.PerSecond, Better: figure.More, Headline: true, Is: "answers over time; failed and total are requests"},
	{Name: "latency", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Labels: "quantile", Is: "of answers, the median over the rounds; of an open loop from when a request was due", More: ": `p50`, `p90`, `p99`, `p99.9`, `max`"},
	{Name: "errors", Unit: figure.Ratio, Better: figure.Less, Headline: true, Is: "share of requests without a 2xx answer in time"},
	{Name: "first-answer", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "alone: from the start of the sandbox until a request was answered, or the sign of --ready was there",
		More: "; its verdict is `at most` where most were so when asked first, of which it is the latest that can be, and has `at_most`"},
	{Name: "first-request", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "that request alone", More: "; absent where readiness is no `http:`"},
	{Name: "cpu-per-request", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "role", Is: "CPU time for an answer, by the role of the process that used it",
		More: ": of each role, of `all` of the target's together (of rounds in which that of every role is known), and of the `client`; a `daemon`'s, and so `all`, holds what it did for a neighbour"},
	{Name: "node-busy", Unit: figure.CPUs, Better: figure.Less, Is: "of the node in the window"},
	{Name: "steal", Unit: figure.CPUs, Better: figure.Less, Is: "of the node in the window: taken by the hypervisor"},
	{Name: "pressure", Unit: figure.Ratio, Better: figure.Less, Labels: "of, resource", Is: "share of the window in which some task waited",
		More: " for `cpu`, `memory` or `io`: of the `node`, in the cgroup of the `workload`, in that of the `neighbour`"},
	{Name: "throughput-kept", Unit: figure.Ratio, Better: figure.More, Is: "throughput beside the neighbour ÷ that alone, of each round; compared with what the baseline keeps"},
	{Name: "latency-times", Unit: figure.Ratio, Better: figure.Less, Labels: "quantile, to", Is: "latency ÷ that of the same round alone", More: "; absent where no round has both"},
	{Name: "throughput-times", Unit: figure.Ratio, Better: figure.More, Labels: "to", Is: "throughput ÷ that of the same round on host", More: "; absent where no round has both"},
	{Name: "neighbour-cpu", Unit: figure.CPUs, Is: "that the sandbox of the neighbour used, of rounds in which that of all its processes is known"},
}}
