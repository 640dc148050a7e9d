//go:build prove

package datapath

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// Statistics and the kernel's own test run have to tell the same time of the same
// loop. Both are taken in turns; a run in which the machine did something else is
// left out by the medians.
func TestTimePerRunIsThatOfATestRun(t *testing.T) {
	for _, c := range []struct {
		name string
		loop loop
		test func(*testing.T, *Datapath) func(repeat int) (float64, error)
	}{
		{"bpf_loop", looped, func(_ *testing.T, d *Datapath) func(int) (float64, error) { return d.TestRun }},
		// The verifier takes half a second for its twin, which is kept therefore.
		{"walked", walked, keptTwin},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := group(t)
			d := with(t, g, c.loop)
			// A datagram socket's connect runs the program as well, and nothing else.
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
				// The lookup of the service is not in the test run.
				if ratio := (counted - light) / tested; ratio < 0.9 || ratio > 1.1 {
					t.Errorf("%d rounds: %.0f ns by statistics without the %.0f of no round, %.0f ns by test runs: %.3f", rounds, counted, light, tested, ratio)
				}
				check.That(t, counted >= 2*before && counted >= 20_000, "%d rounds take %.0f ns, less rounds %.0f", rounds, counted, before)
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

// inTurns gives the medians of ns per run: as the kernel counts it for a client's
// connects, and as it times test runs.
func inTurns(t *testing.T, d *Datapath, connect func(string, netip.AddrPort, int) int, test func(int) (float64, error)) (counted, tested float64) {
	t.Helper()
	// Few runs a turn: statistics hold what interrupted them, test runs do not.
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
