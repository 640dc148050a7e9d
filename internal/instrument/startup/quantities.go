package startup

import "github.com/tare-bench/tare/internal/core/figure"

// Quantities are all that is said of where the time of a start goes. Each has the label target.
var Quantities = figure.Catalogue{Experiment: Name, Quantities: []figure.Quantity{
	{Name: "wall-time", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "from the call to its return; of logs from a start's first event to its last"},
	{Name: "time-to-first-instruction", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "to the workload's first instruction"},
	{Name: "time-to-first-instruction-at-most", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "until when that was at the latest, of starts of which it is not known"},
	{Name: "time-to-ready", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "until the workload was found ready, where it was asked", More: " (`--ready`); its verdict is `at most`, with `at_most`, where most were so when asked first"},
	{Name: "ready-resolution", Unit: figure.Nanoseconds, Better: figure.Less, Is: "how exactly that is known: from the last poll in vain to the one that was not"},
	{Name: "first-request", Unit: figure.Nanoseconds, Better: figure.Less, Is: "how long the first request took that had a good answer", More: " (`--ready http:…`)"},
	{Name: "runtime-calls", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "of it in the OCI runtime's calls"},
	{Name: "engine-time", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "the engine's", More: ", absent of bare runtimes, where it would be tare's: wall time less calls, less the workload's time where the call waits for its end, and less the gaps in which a VMM alone works"},
	{Name: "cpu-time", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Is: "of all processes of the start, the daemon included"},
	{Name: "watching-ratio", Unit: figure.Ratio, Better: figure.Less, Is: "wall time watched ÷ not watched, of the same rounds", More: " (`--untraced`); its reasons say whether they differ"},
	{Name: "watching-cpu-share", Unit: figure.Ratio, Better: figure.Less, Is: "CPU time of the watching ÷ that of the start"},
	{Name: "step-time", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "step, kind, nth", Is: "of a step, in the order of those starts that went the way most went"},
	{Name: "step-cpu-time", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "step, kind, nth", Is: "CPU time of it"},
	{Name: "phase-time", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "phase, kind, nth", Is: "of what was at work; in each start they add up to its wall time, their medians need not"},
	{Name: "phase-cpu-time", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "phase, kind, nth", Is: "CPU time of it"},
	{Name: "gap-time", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "nth, in, after, before", Is: "of a wait between two events, the one that costs most first", More: "; where it looks like a known timer that is its verdict"},
}}
