package startup

import "github.com/tare-bench/tare/internal/core/figure"

// Quantities are the quantities of this instrument. Each has the label target.
var Quantities = figure.Catalogue{Experiment: Name, Quantities: []figure.Quantity{
	{Name: "wall-time", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "from the call to its return; for logs, from the first event of a start to the last"},
	{Name: "time-to-first-instruction", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "to the workload's first instruction"},
	{Name: "time-to-first-instruction-at-most", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "upper bound of the time to the first instruction, for starts in which it is unknown"},
	{Name: "time-to-ready", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "until the workload was ready, if it was polled", More: " (`--ready`); its verdict is `at most`, with `at_most`, if most workloads were ready at the first poll"},
	{Name: "ready-resolution", Unit: figure.Nanoseconds, Better: figure.Less, Is: "resolution of the time to ready: from the last failed poll to the first successful one"},
	{Name: "first-request", Unit: figure.Nanoseconds, Better: figure.Less, Is: "duration of the first successful request", More: " (`--ready http:…`)"},
	{Name: "runtime-calls", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "time in calls of the OCI runtime"},
	{Name: "engine-time", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "time in the engine", More: ", absent for bare runtimes, where it would be tare's own: wall time without calls, without the workload if the call waits for its end, and without gaps in which only a VMM works"},
	{Name: "cpu-time", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "CPU time of all processes of the start, including the daemon"},
	{Name: "watching-ratio", Unit: figure.Ratio, Better: figure.Less, Is: "watched ÷ unwatched wall time of the same rounds", More: " (`--untraced`); its reasons report whether they differ"},
	{Name: "watching-cpu-share", Unit: figure.Ratio, Better: figure.Less, Is: "CPU time of the watch ÷ CPU time of the start"},
	{Name: "step-time", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "step, kind, nth", Is: "duration of a step, for the starts with the most frequent sequence of steps"},
	{Name: "step-cpu-time", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "step, kind, nth", Is: "CPU time of the step"},
	{Name: "phase-time", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "phase, kind, nth", Is: "time by component; in each start the times sum to the wall time, their medians need not"},
	{Name: "phase-cpu-time", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "phase, kind, nth", Is: "CPU time of the component"},
	{Name: "gap-time", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "nth, in, after, before", Is: "duration of a wait between two events, the most expensive first", More: "; if it resembles a known timer, that is its verdict"},
}}
