package density

import (
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
)

// Instrument registers the density command with the rest of tare.
var Instrument = instrument.Instrument{
	Name:  Name,
	Help:  "How many sandboxes a node holds until a stated end, and what one more costs on the way.",
	Short: "Find how many sandboxes fit until memory, pids, latency or a failure ends it",
	Long: `Add sandboxes in steps until the stated end, one target after the other in every
round, and remove all of them: how many were there, what one more cost by step and by
role, where that bends, how much longer a start takes the more are there, what broke
first, and how long the machine takes to come back.

It is guarded. Memory of 5 % of the node, at least 512 MiB (--keep-free), a twentieth of
the process ids, of the disk below the run's folder, and room in tare's own cgroup are
never touched. The next sandboxes are begun only where the most that one has taken so far
leaves all of that, with a spare for what cannot be foreseen; no more than --most are
ever there. The node is looked at twenty times a second while something is started, and
where it falls below all the same, nothing more is begun and all of it is removed: so it
is on Ctrl-C, and where memory goes though nothing was started.

--dry-run says how far it would go, by a trial of 3 sandboxes, and makes nothing else.

Without TARGET, everything that can be weighed here is. Targets are those of
tare lifecycle.`,
	Example: `  tare density runc --dry-run --settle 500ms --hold 200ms
  tare density floor runc --until 8 --rounds 1 --settle 200ms --hold 200ms`,
	New:        func() option.Options { o := Defaults(); return &o },
	Quantities: &Quantities,
	Judge:      instrument.Judging(Judge),
	Verbose:    "the machine",
}
