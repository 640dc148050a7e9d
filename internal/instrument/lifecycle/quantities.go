package lifecycle

import "github.com/tare-bench/tare/internal/core/figure"

var laneQuantiles = []string{"p50", "p90", "p99", "max"}

// Quantities lists the figures of a lifecycle run. Each has the labels target, op and
// lanes.
var Quantities = figure.Catalogue{Experiment: Name, Quantities: []figure.Quantity{
	{Name: "latency", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true,
		Is: "of one lane: from the call to the workload's first instruction for start and run where that is known, else to what \"done\" means", More: "; with `versus`"},
	{Name: "makespan", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "of several lanes: from their release to the last one's \"done\"", More: "; with `versus`"},
	{Name: "mean-latency", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true,
		Is: "the mean of each output of a tool that keeps no single times is a round; of several lanes, up to so many operations were under way at once", More: "; with `versus`"},
	{Name: "time-per-operation", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true,
		Is: "the time of a whole run ÷ its operations, any number of which were under way at once; no latency", More: "; of imported results; with `versus`"},
	{Name: "lanes-lost", Unit: figure.Count, Better: figure.Less, Is: "lanes skipped because an earlier operation failed", More: "; where there are any"},
	{Name: "trimmed-mean", Unit: figure.Nanoseconds, Is: "mean of the rounds without the largest and the smallest, as the iSulad report has it"},
	{Name: "time-to", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Labels: "stamp", Is: "from the beginning (of several lanes: their release) to the last lane's stamp",
		More: ": `returned`, `running`, `first` (the workload's first instruction), `exited`, `seen`, `ready` where workloads were asked (`--ready`), whose verdict is `at most`, with `at_most`, where most were so when asked first; of a pod in a cluster also `scheduled`, `node-sandbox`, `sandbox`, `node-started`, `ready`, `gone` ([kubernetes.md](kubernetes.md))"},
	{Name: "ready-resolution", Unit: figure.Nanoseconds, Labels: "quantile", Is: "from the last poll in vain to the one that was not: how exactly it is known when the workload was ready", More: " (`--ready`); `p50` and `max` of all lanes of all rounds"},
	{Name: "first-request", Unit: figure.Nanoseconds, Better: figure.Less, Is: "how long the first request took that had a good answer, the median", More: " (`--ready http:…`)"},
	{Name: "lane-latency", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "quantile", Is: "of all lanes of all rounds, from each one's own start", More: ": `p50` (the median), `p90`, `p99`, `max` ([nearest rank](statistics.md#one-value))"},
	{Name: "release-skew", Unit: figure.Nanoseconds, Labels: "quantile", Is: "from the first lane's start to the last one's, the median of the rounds", More: "; with `max` the largest"},
	{Name: "parallelism", Unit: figure.Ratio, Is: "sum of the latencies ÷ makespan, the median of the rounds"},
	{Name: "own-cpu-share", Unit: figure.Ratio, Is: "CPU time of tare and its lanes ÷ (makespan × CPUs), the median of the rounds"},
	{Name: "command-cpu", Unit: figure.Nanoseconds, Is: "CPU time of the command and the children that it waited for, the median"},
	{Name: "user-cpu", Unit: figure.Nanoseconds, Is: "the part of it in user mode, the median: the medians of both parts need not add up"},
	{Name: "system-cpu", Unit: figure.Nanoseconds, Is: "the part of it in the kernel, the median"},
	{Name: "max-rss", Unit: figure.Bytes, Is: "the largest resident size of the command and the children that it waited for, the median"},
	{Name: "role-processes", Unit: figure.Count, Labels: "role, when", Is: "of the engine's own, not its clients' and not the workload", More: "; `before` and `after` a batch"},
	{Name: "role-cpu", Unit: figure.Nanoseconds, Labels: "role",
		Is: "CPU time of batches in which none of those processes ended, from before to after, ÷ lanes; without what they ran and waited for, such as the OCI runtime, and with what they did for others"},
	{Name: "role-memory", Unit: figure.Bytes, Labels: "role, when",
		Is: "PSS of those processes: a page that several share is counted once among them, so one of many is lighter than one alone; peak: the largest that was read", More: "; `before`, `peak` and `after` a batch"},
	{Name: "role-memory-growth", Unit: figure.Bytes, Labels: "role", Is: "(after − before) ÷ lanes; below 0 where memory was given back"},
	{Name: "role-memory-each", Unit: figure.Bytes, Labels: "role", Is: "of one process, after the batch, or before where none is left"},
}}
