package proof

import (
	"errors"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/record"
)

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
			if x.Starts != 15 || x.Failed > 0 || !x.Watching.Known {
				t.Fatalf("%s: %d starts, %d failed, %+v %s", x.Target, x.Starts, x.Failed, x.Watching, x.Why)
			}
			if x.Different && x.Watching.Value > 1 {
				different += x.Target + " "
			}
			if !x.WatchingCPU.Known || x.WatchingCPU.Value > bound {
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

// The kernel's trace events tell of the same calls as BPF does, or that arguments
// were gone before they could be read.
func TestTraceEventsTellTheSame(t *testing.T) {
	w, err := tracer.Open(tracer.Options{Instance: "tare-proof", Only: []string{record.MethodTracefs}})
	if errors.Is(err, tracer.ErrUnsupported) {
		t.Skipf("there is no tracefs here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := play(t)
	targets := []string{"runc", "docker/runc"}
	said := map[string]string{} // by target and method
	for attempt := 1; len(said) < 2*len(targets) && attempt <= attempts; attempt++ {
		for _, method := range []string{record.MethodBPF, record.MethodTracefs} {
			rec, j := watch(t, append([]string{"--rounds", "2", "--trace", method}, s.on(targets...)...)...)
			for i := range rec.Starts {
				x := &rec.Starts[i]
				if x.Method != method || x.Failure != nil {
					t.Fatalf("%s by %s: %+v", x.Target, x.Method, x.Failure)
				}
				checkSums(t, x, engineOf(t, j, x.Target))
				if slices.ContainsFunc(x.Missing, func(m record.Missing) bool { return m.What == "unreadable" && method == record.MethodTracefs }) {
					t.Logf("attempt %d, %s: %+v", attempt, x.Target, x.Missing)
					continue
				}
				casts[x.Target].check(t, x)
				steps := ""
				for _, p := range trace.Calls(x, "docker") {
					steps += p.Name + ", "
				}
				said[x.Target+" "+method] = steps
			}
		}
	}
	for _, target := range targets {
		by, other := said[target+" "+record.MethodBPF], said[target+" "+record.MethodTracefs]
		if by == "" || by != other {
			t.Errorf("%s: %q, by trace events %q", target, by, other)
		}
	}
}
