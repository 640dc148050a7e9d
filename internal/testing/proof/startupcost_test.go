//go:build prove

package proof

import (
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// Observed and unobserved starts alternate, and the observed ones are not significantly
// longer. The CPU time of tracing is a small part of a start.
func TestTracingDoesNotSlowStarts(t *testing.T) {
	s := play(t)
	const rounds, bound = 30, 0.02
	rec, j := watch(t, append([]string{"--untraced", "--rounds", "30", "--warmup", "2"}, s.on("runc", "docker/runc")...)...)
	for i := range j.Targets {
		x := &j.Targets[i]
		t.Logf("%s: %.2f ms, observed over unobserved %.4f [%.4f, %.4f]; tracing used %.2f %% of its CPU time", x.Target,
			x.Wall.Value/1e6, x.Watching.Value, x.Watching.Lo, x.Watching.Hi, 100*x.WatchingCPU.Value)
		must.That(t, x.Starts == rounds && x.Failed == 0 && x.Watching.Known(),
			"%s: %d starts, %d failed, %+v %s", x.Target, x.Starts, x.Failed, x.Watching, x.Watching.Reasons)
		check.That(t, !x.Watching.Versus.Different() || x.Watching.Value <= 1, "%s: observed starts are longer: %s", x.Target, x.Watching.Reasons)
		check.That(t, x.WatchingCPU.Known() && x.WatchingCPU.Value <= bound,
			"%s: tracing used %.4f of its CPU time", x.Target, x.WatchingCPU.Value)
	}
	for i := range rec.Starts {
		x := &rec.Starts[i]
		check.That(t, x.Lost == 0, "%s: %d events were lost", x.Target, x.Lost)
	}
}

// The wall time is the command's lifetime according to the kernel, plus at most a
// millisecond for its fork and for the notification of its exit.
func TestWallTimeOfACommandIsItsLifetime(t *testing.T) {
	least := map[string]int64{}
	rec, _ := watch(t, "--rounds", "10", "runc", "crun")
	for i := range rec.Starts {
		x := &rec.Starts[i]
		var born, ended int64
		for _, p := range x.Processes {
			if p.Kind == record.KindCall {
				born, ended = p.Born, p.Ended
			}
		}
		before, after := born-x.Began, x.Ended-ended
		must.That(t, before >= 0 && after >= 0, "%s: command forked %d ns after the begin, and exited %d ns before the end", x.Target, before, after)
		if had, ok := least[x.Target]; !ok || before+after < had {
			least[x.Target] = before + after
		}
	}
	for target, ns := range least {
		check.That(t, ns <= 1e6, "%s: wall time exceeds the lifetime by %.3f ms", target, float64(ns)/1e6)
	}
	check.Equal(t, "targets", len(least), 2)
}
