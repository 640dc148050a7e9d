//go:build prove

package proof

import (
	"testing"

	"github.com/tare-bench/tare/record"
)

// Watching does not show: of starts that are watched and starts that are not, in
// turns, neither is longer beyond what they vary by, and what it takes itself is
// a small part of what the start does.
func TestWatchingAStartDoesNotChangeIt(t *testing.T) {
	s := play(t)
	const rounds, bound = 30, 0.02
	rec, j := watch(t, append([]string{"--untraced", "--rounds", "30", "--warmup", "2"}, s.on("runc", "docker/runc")...)...)
	for i := range j.Targets {
		x := &j.Targets[i]
		t.Logf("%s: %.2f ms, watched over not watched %.4f [%.4f, %.4f]; watching took %.2f %% of its CPU time", x.Target,
			x.Wall.Value/1e6, x.Watching.Value, x.Watching.Lo, x.Watching.Hi, 100*x.WatchingCPU.Value)
		if x.Starts != rounds || x.Failed > 0 || !x.Watching.Known() {
			t.Fatalf("%s: %d starts, %d failed, %+v %s", x.Target, x.Starts, x.Failed, x.Watching, x.Watching.Reasons)
		}
		if x.Watching.Versus.Different() && x.Watching.Value > 1 {
			t.Errorf("%s: watched starts are longer: %s", x.Target, x.Watching.Reasons)
		}
		if !x.WatchingCPU.Known() || x.WatchingCPU.Value > bound {
			t.Errorf("%s: watching took %.4f of its CPU time", x.Target, x.WatchingCPU.Value)
		}
	}
	for i := range rec.Starts {
		if x := &rec.Starts[i]; x.Lost > 0 {
			t.Errorf("%s: %d events were lost", x.Target, x.Lost)
		}
	}
}

// What is called the wall time is the command's life as the kernel has it, and no
// more than a millisecond for its fork and for whoever waits to be told of its end.
func TestTheWallTimeOfACommandIsItsLife(t *testing.T) {
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
		if before < 0 || after < 0 {
			t.Fatalf("%s: born %d ns after it began, and %d ns before it returned ended", x.Target, before, after)
		}
		if had, ok := least[x.Target]; !ok || before+after < had {
			least[x.Target] = before + after
		}
	}
	for target, ns := range least {
		if ns > 1e6 {
			t.Errorf("%s: %.3f ms of its wall time are not its life", target, float64(ns)/1e6)
		}
	}
	if len(least) != 2 {
		t.Errorf("%v", least)
	}
}
