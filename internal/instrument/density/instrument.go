package density

import (
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
)

// Instrument registers the density command with the rest of tare.
var Instrument = instrument.Instrument{
	Name:  Name,
	Help:  "How many sandboxes a node holds until a stated end, and what one more costs on the way.",
	Short: "Find how many sandboxes fit until memory, pids, latency or a failure stops it",
	Long: `Add sandboxes in steps until the given end, one target after the other in every
round, and remove all of them. The report shows how many there were, the cost of an
extra sandbox by step and by role, where that cost changes, how start latency grows,
what failed first, and how long the machine takes to recover.

A guard protects the node. It reserves 5 % of the node's memory, at least 512 MiB
(--keep-free), a twentieth of the process ids and of the disk below the run's
folder, and room in tare's own cgroup. Sandboxes are added only if the largest
usage of one sandbox so far, with a margin, leaves the reserve untouched, and never
more than --most. The node is checked twenty times a second. If it falls below the
reserve, nothing more is started and all sandboxes are removed. Ctrl-C removes them
too.

--dry-run estimates the result with a trial of 3 sandboxes, and creates nothing else.

Without TARGET, all available targets are measured. Targets are those of
tare lifecycle.`,
	Example: `  tare density runc --dry-run --settle 500ms --hold 200ms
  tare density floor runc --until 8 --rounds 1 --settle 200ms --hold 200ms`,
	New:        func() option.Options { o := Defaults(); return &o },
	Quantities: &Quantities,
	Judge:      instrument.Judging(Judge),
	Verbose:    "the machine",
}
