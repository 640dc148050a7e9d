package proof

import "testing"

// Watching does not show: of starts that are watched and starts that are not, in
// turns, neither is longer beyond what they vary by, and what it takes itself is
// a small part of what the start does. make bench has more of them.
func TestWatchingAStartDoesNotChangeIt(t *testing.T) {
	s := play(t)
	const bound = 0.05 // 2 % where the machine does nothing else
	for attempt := 1; ; attempt++ {
		rec, j := watch(t, append([]string{"--untraced", "--rounds", "15"}, s.on("runc", "docker/runc")...)...)
		different := ""
		for i := range j.Targets {
			x := &j.Targets[i]
			t.Logf("%s: %.2f ms, watched over not watched %.4f [%.4f, %.4f]; watching took %.2f %% of its CPU time", x.Target,
				x.Wall.Value/1e6, x.Watching.Value, x.Watching.Lo, x.Watching.Hi, 100*x.WatchingCPU.Value)
			if x.Starts != 15 || x.Failed > 0 || !x.Watching.Known() {
				t.Fatalf("%s: %d starts, %d failed, %+v %s", x.Target, x.Starts, x.Failed, x.Watching, x.Why)
			}
			if x.Different && x.Watching.Value > 1 {
				different += x.Target + " "
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
		if different == "" {
			return
		}
		if attempt == attempts { // of twenty such runs one says so by chance
			t.Fatalf("in %d attempts the watched starts of %s are longer", attempts, different)
		}
	}
}
