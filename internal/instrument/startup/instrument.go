package startup

import (
	"io"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
)

// Instrument registers this instrument.
var Instrument = instrument.Instrument{
	Name:  Name,
	Help:  "Where the time of a start goes.",
	Short: "Show where the time of a start goes, live or from logs",
	Long: `Start containers on each target, or run any command that starts one. Every process
involved is watched: the client, children of daemons, shims, each call of the OCI
runtime and its init, network plugins, monitors, VMMs. Each has its start, end, CPU
time and exit code on one clock, up to the first instruction of the workload. Time
without any event is a gap. Gaps are ranked, and gaps that resemble a known timer
are named.

--log and --journal add the log lines of the engine, the runtime and the guest to
the processes of each start; use debug level. Without a target or a command, starts
are read from the logs alone: Kata (runtime, agent, proxy, runtime-rs), containerd,
CRI-O, docker and runsc, in any mixture. This needs no configuration and no root.

A command runs unchanged, --warmup plus --rounds times, and tare does not remove
what it leaves behind. Use "docker run --rm" instead of "docker run -d", or expect
that many containers. Without TARGET and COMMAND, all available targets are started.
Targets are those of tare lifecycle.`,
	Example: `  tare startup runc --rounds 3
  tare startup host runc --rounds 2 --format md
  tare startup --rounds 2 -- sh -c 'sleep 0.01'
  tare startup --log kata.log --log containerd.log --format chrome`,
	New:        func() option.Options { o := Defaults(); return &o },
	Quantities: &Quantities,
	Judge:      instrument.Judging(Judge),
	Verbose:    "every process, every gap",
	Formats: map[string]instrument.Format{
		"chrome": {Help: "a trace for Perfetto", Write: func(w io.Writer, j instrument.Judgement) error {
			return export.Value(w, chromeOf(j.(*Judgement)))
		}},
		"otlp": {Help: "spans of OpenTelemetry", Write: func(w io.Writer, j instrument.Judgement) error {
			s := j.(*Judgement)
			return export.Lines(w, otlpOf(s.Record, s))
		}},
	},
}
