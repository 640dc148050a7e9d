//go:build prove

package proof

import (
	"fmt"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// A known loop takes as long under load as in the kernel's own test run.
func TestRunTimeUnderLoadMatchesTestRun(t *testing.T) {
	s := playBPF(t)
	const heavy = 60_000
	d, _ := attachment(t)
	must.OK(t, d.SetHeavy(heavy))
	// Other work only increases times, so use the minimum of each.
	light, loaded, alone := 0.0, 0.0, 0.0
	least := func(of *float64, ns float64) {
		if *of == 0 || ns < *of {
			*of = ns
		}
	}
	for range 3 {
		for range 20 {
			ns := must.Get(d.TestRun(20))(t)
			least(&alone, ns)
		}
		rec, _ := s.weigh("bpf", "load", "--datapath", "reference", "-c", "1", "-t", "150ms", "--idle", "100ms", "--rounds", "3", "--heavy", fmt.Sprintf("0,%d", heavy))
		for _, p := range rec.Points {
			if p.Phase != record.PhaseLoad || !p.Asked.Statistics {
				continue
			}
			r := ran(t, &p, "tare_connect4")
			must.That(t, p.Failure == nil && r.Count != 0, "%+v", p)
			if each := float64(r.Time) / float64(r.Count); p.Asked.Heavy == 0 {
				least(&light, each)
			} else {
				least(&loaded, each)
			}
		}
	}
	ratio := (loaded - light) / alone // a test run does not include the lookup
	t.Logf("%.0f ns under load, %.0f of them without the loop; %.0f ns in a test run: %.3f", loaded, light, alone, ratio)
	check.That(t, ratio >= 0.9 && ratio <= 1.1, "%.3f times the time of a test run", ratio)
}

// BPF program time must count against a CPU limit of any size.
func TestProgramTimeCountsAgainstAnyLimit(t *testing.T) {
	for _, cpus := range []string{"0.2", "0.5", "1"} {
		t.Run(cpus+" CPUs", func(t *testing.T) { paysFor(t, cpus, "2s") })
	}
}
