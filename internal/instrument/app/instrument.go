package app

import (
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/record"
)

// Name is the instrument's verb, its key in a plan and its name in a record.
const Name = "app"

// Instrument registers the app command with the rest of tare.
var Instrument = instrument.Instrument{
	Name:  Name,
	Help:  "What a service of one's own pays in requests.",
	Short: "Weigh what a service of your own pays: throughput, latency, CPU per request",
	Long: `Start a server on each target, wait for its first answer, and load it: throughput,
latency from p50 to p99.9, errors with their cause, the time to the first answer and
of the first request, and the CPU time of a request by role (workload, shim, VMM,
sentry, monitor, daemon), the client's apart. All of it beside a baseline, in the same
rounds.

Without --rate each connection asks again as soon as it has its answer (a closed
loop); with it requests are due at fixed times and their latencies count from then (an
open loop), so that a server that stalls is seen in full.

--neighbour has another sandbox of the same runtime work beside, and says what the
server loses: against itself alone, and against the baseline.`,
	Example: `  tare app host runc -c 4 -t 200ms --rounds 1
  tare app runc --command '/probe serve 8080' --rate 500 -t 200ms --rounds 1 --neighbour 'spin 0.5cpu'`,
	New:        func() option.Options { o := Defaults(); return &o },
	Quantities: &Quantities,
	Lines:      []record.LineType{record.Own[Window](TypeWindow)},
	Judge:      instrument.Judging(Judge),
	Verbose:    "the environment",
}
