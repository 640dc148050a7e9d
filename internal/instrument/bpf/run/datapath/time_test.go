//go:build prove

package datapath

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// Kernel statistics and the kernel's test run must report the same time for the same
// loop. The two alternate, and medians remove runs disturbed by other work.
func TestTimePerRunMatchesTestRun(t *testing.T) {
	for _, c := range []struct {
		name string
		loop loop
		test func(*testing.T, *Datapath) func(repeat int) (float64, error)
	}{
		{"bpf_loop", looped, func(_ *testing.T, d *Datapath) func(int) (float64, error) { return d.TestRun }},
		// The verifier needs half a second for the twin program, so load it once.
		{"walked", walked, keptTwin},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := group(t)
			d := with(t, g, c.loop)
			// The connect of a datagram socket runs only the program.
			connect := clientIn(t, g)
			test := c.test(t, d)
			counting(t)
			var light, before float64
			for _, rounds := range []int64{0, 20_000, 60_000} {
				must.OK(t, d.SetHeavy(rounds))
				counted, tested := inTurns(t, d, connect, test)
				t.Logf("%d rounds: %.0f ns by statistics, %.0f ns by test runs", rounds, counted, tested)
				if rounds == 0 {
					light = counted
					continue
				}
				// The test run does not include the service lookup.
				if ratio := (counted - light) / tested; ratio < 0.9 || ratio > 1.1 {
					t.Errorf("%d rounds: %.0f ns by statistics without the %.0f ns of zero rounds, %.0f ns by test runs: %.3f", rounds, counted, light, tested, ratio)
				}
				check.That(t, counted >= 2*before && counted >= 20_000, "%d rounds take %.0f ns, fewer rounds %.0f", rounds, counted, before)
				before = counted
			}
		})
	}
}

func keptTwin(t *testing.T, d *Datapath) func(repeat int) (float64, error) {
	t.Helper()
	p := must.Get(d.loadTwin())(t)
	t.Cleanup(func() { p.Close() })
	return func(repeat int) (float64, error) {
		_, each, err := p.Benchmark(frame[:], repeat, nil)
		return float64(each.Nanoseconds()), err
	}
}

// inTurns returns the median ns per run from kernel statistics of a client's connects,
// and from test runs.
func inTurns(t *testing.T, d *Datapath, connect func(string, netip.AddrPort, int) int, test func(int) (float64, error)) (counted, tested float64) {
	t.Helper()
	// Few runs per turn: statistics include interrupts, test runs do not.
	const turns, each, tests = 101, 2, 10
	var a, b []float64
	for range turns {
		count, spent := runs(t, d.IDs()[1])
		connect("udp", d.Service(0), each)
		countAfter, spentAfter := runs(t, d.IDs()[1])
		must.That(t, countAfter-count == each, "%d connects, %d runs", each, countAfter-count)
		a = append(a, float64(spentAfter-spent)/each)
		one := must.Get(test(tests))(t)
		b = append(b, one)
	}
	return median(a), median(b)
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
