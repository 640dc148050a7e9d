package lifecycle

import (
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
)

// Instrument registers the lifecycle command with the rest of tare.
var Instrument = instrument.Instrument{
	Name:  Name,
	Help:  "How long each operation takes on each target.",
	Short: "Time create, start, stop, rm and run, alone and many at once",
	Long: `Time create, start, stop, rm and run on each target, interleaved in rounds. The
report shows medians with 95 % intervals, comparisons with a baseline, and
findings. Without TARGET, all available targets are measured.

A target is host, floor, an OCI runtime (runc, or NAME=PATH), or a runtime
behind an engine: docker/runc, podman/crun, containerd/runsc, isula/runc, and
cri+containerd/runc for a CRI endpoint, where pods are timed too (runp, stopp,
rmp). docker+cli/runc runs docker's command line, docker/runc calls its API.
podman/runc runs podman's command line. To measure podman's service, use docker
with --docker-host unix:///run/podman/podman.sock. An engine's name alone is its
default runtime. kubernetes/RUNTIMECLASS is a pod in a cluster: run ends when the
pod is Ready, rm when it is gone.

With more than one lane, N operations are released together. The measured value
is the makespan: the time from the release to the last completion. The report
also shows the latency of each lane, the skew of the release and the effective
parallelism.

The record contains every raw sample. tare report repeats any report from it.`,
	Example: `  tare lifecycle runc crun
  tare lifecycle host floor runc --rounds 6 -o run.jsonl
  tare lifecycle runc crun -n 1,10 --rounds 6 --ops create,start,stop,rm
  tare lifecycle runc mine=/usr/sbin/runc --ops run --precision 20% --budget 20s
  tare lifecycle floor crun --baseline floor --format md --quiet
  tare lifecycle runc docker/runc podman/runc containerd/runc --rounds 3 --missing skip
  tare lifecycle runc docker --via api,cli --ops run -n 1,10 --rounds 3 --missing skip
  tare lifecycle runc cri+containerd --ops runp,stopp,rmp,run --missing skip`,
	New:        func() option.Options { o := Defaults(); return &o },
	Quantities: &Quantities,
	Judge:      instrument.Judging(Judge),
	Verbose:    "every stamp, CPU time, memory and the reason of each verdict",
}
