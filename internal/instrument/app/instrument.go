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
	Short: "Measure your own service: throughput, latency and CPU per request",
	Long: `Start a server on each target, wait for its first response, and load it. The report
shows throughput, latency from p50 to p99.9, errors with their cause, the time to
the first response, the latency of the first request, and the CPU time per request
by role (workload, shim, VMM, sentry, monitor, daemon) and of the client. All of it
is compared with a baseline in the same rounds.

Without --rate, each connection sends its next request after a response (closed
loop). With --rate, requests are due at fixed times and latency counts from then
(open loop), so a stalled server is fully visible.

--neighbour runs work in another sandbox of the same runtime. The report shows what
the server loses, compared with the server alone and with the baseline.`,
	Example: `  tare app host runc -c 4 -t 200ms --rounds 1
  tare app runc --command '/probe serve 8080' --rate 500 -t 200ms --rounds 1 --neighbour 'spin 0.5cpu'`,
	New:        func() option.Options { o := Defaults(); return &o },
	Quantities: &Quantities,
	Lines:      []record.LineType{record.Own[Window](TypeWindow)},
	Judge:      instrument.Judging(Judge),
	Verbose:    "the environment",
}
