package density

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
)

// Quantities lists the figures of a density run. Each has the label target, and figures
// of a step also sandboxes.
var Quantities = figure.Catalogue{Experiment: Name, Quantities: []figure.Quantity{
	{Name: "reached", Unit: figure.Count, Better: figure.More, Headline: true, Labels: "until", Is: "sandboxes that were there at once when it ended"},
	{Name: "start-latency", Unit: figure.Nanoseconds, Better: figure.Less, Is: "of the starts of a step the median of each round, and the median of these",
		More: "; where the run has one round, of its starts, with their interval and number; until ready where that was asked for: its verdict is `at most`, and it has `at_most`, where most were so when asked first"},
	{Name: "start-latency-times", Unit: figure.Ratio, Better: figure.Less, Is: "how many times as long a start takes as in the first step: of all starts, each compared with the first ones of its own round", More: "; absent where either side is known as `at most`"},
	{Name: "memory-per-sandbox", Unit: figure.Bytes, Better: figure.Less, Labels: "of", Is: "what the node's memory in use rose by, other processes' change taken off, by sandbox, and that of each role", More: "; `of` the `node` and each role"},
	{Name: "cpu-per-sandbox", Unit: figure.CPUs, Better: figure.Less, Is: "of all roles while idle"},
	{Name: "memory-of-one-more", Unit: figure.Bytes, Better: figure.Less, Labels: "from, to", Is: "the slope of the node's memory over the counts between two bends"},
	{Name: "recovery", Unit: figure.Nanoseconds, Better: figure.Less, Headline: true, Labels: "of",
		Is: "until all sandboxes were removed, and until the node's memory was back", More: ": `removal`, and from the same beginning `memory`, what stayed of the sandboxes' processes being in use; failed are rounds in which it was not"},
	{Name: "left", Unit: figure.Count, Better: figure.Less, Headline: true, Labels: "of", Is: "cgroups, processes and mounts that bear the id of a sandbox that was removed: the most of any round",
		More: "; `of` is `cgroups`, `processes` or `mounts`, these of rounds in which they could be read"},
}}

// put appends a figure of the target.
func (t *Target) put(quantity string, e figure.Estimate, rounds stat.Rounds, labels ...string) *figure.Figure {
	t.All = append(t.All, Quantities.New(quantity, e, figure.Of(append([]string{"target", t.Info.Name}, labels...)...)))
	f := &t.All[len(t.All)-1]
	f.Rounds = figure.ByRound(rounds)
	return f
}
