package startup

import (
	"io"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
)

// Instrument is what the rest of tare knows of this one.
var Instrument = instrument.Instrument{
	Name:  Name,
	Help:  "Where the seconds of a start go.",
	Short: "See where the seconds of a start go, live or in logs",
	Long: `Start containers on each target, or run any command that starts one, and watch
every process that takes part: the client, what daemons start, shims, each call
of the OCI runtime, its init, network plugins one by one, monitors, VMMs; each
with its start, end, CPU time and exit code on one clock, to the workload's first
instruction. What nothing explains is a gap; gaps are ranked, and those that look
like a timer somebody waited for are named.

With --log, --journal or both beside a target or a command, what its engine, its
runtime and a guest log of the starts stands in them, below the processes that it is
of; debug level tells most. With neither, starts are put together from the logs of Kata
(runtime, agent, proxy, runtime-rs), containerd, CRI-O, docker and runsc, in any
mixture. No configuration, no root.

A command is run as it is, --warmup plus --rounds times, and what it leaves behind
is yours. Give "docker run --rm", not "docker run -d", or expect that many
containers. Without TARGET and COMMAND, everything that can be weighed here is
started. Targets are those of tare lifecycle.`,
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
