//go:build prove

package proof

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/record"
)

// A probe uses a requested amount of memory and CPU time. The measured usage must match,
// and the node's change must be explained. The targets are the host, the floor and bare
// runtimes.
func TestProbeUsageIsMeasuredInRuntimes(t *testing.T) {
	calibrate(t, append([]string{"host", "floor", "runc", "crun"}, runsc()...),
		"idle,hold 64MiB,hold 256MiB,hold 1024MiB,spin 0.25cpu,spin 1cpu")
}

// The same as TestProbeUsageIsMeasuredInRuntimes in the containers and pods of engines.
func TestProbeUsageIsMeasuredInEngines(t *testing.T) {
	targets := []string{"docker/runc", "podman/crun", "containerd/runc", "cri+containerd/runc", "cri+cri-o/crun"}
	calibrate(t, targets, "idle,hold 256MiB,spin 0.25cpu", fleetFlags(t, targets...)...)
}

// calibrate measures loads of known size on targets and checks every figure.
func calibrate(t *testing.T, targets []string, phases string, flags ...string) {
	for target, off := range weigh(t, targets, phases, flags...) {
		for _, why := range off {
			t.Errorf("%s: %s", target, why)
		}
	}
}

// weigh returns the deviations by target.
func weigh(t *testing.T, targets []string, phases string, flags ...string) map[string][]string {
	t.Helper()
	args := append([]string{"overhead", "--phases", phases, "--sandboxes", "1", "--rounds", "1", "--hold", "2s", "--settle", "1s"}, flags...)
	recs, judged, _ := tare(folders(t), overhead.Judge, append(args, targets...)...)
	rec, o := recs[0], judged[0]
	off, seen := map[string][]string{}, map[string]int{}
	for _, table := range o.Tables {
		for i := range table.Cells {
			c := &table.Cells[i]
			if c.Rounds == 0 {
				t.Errorf("%s, %s: no figures: %+v", c.Target, table.Phase, c.Failure)
				continue
			}
			seen[c.Target]++
			off[c.Target] = append(off[c.Target], outOfBounds(table.Phase, c, spun(rec, c.Target, table.Phase))...)
		}
	}
	for _, target := range targets {
		name, _, _ := strings.Cut(target, "=")
		check.Equal(t, name, seen[name], strings.Count(phases, ",")+1)
	}
	return off
}

// outOfBounds lists deviations of a cell from its load: more than 1 % and 1 MiB, or 2 %
// of CPU time. A residual may be 2 % of the node's change or 4 MiB, plus the node's own
// variation.
func outOfBounds(phase string, c *overhead.Cell, spun float64) (off []string) {
	l, busy := &c.Ledger, c.Ledger.Host.Of("node-busy").Value
	expected, measured := c.All.Of("load", "of", "expected").Value, c.All.Of("load", "of", "measured").Value
	if !l.Complete {
		off = append(off, fmt.Sprintf("%s, %s: incomplete: %+v", c.Target, phase, l.Problems))
	}
	kind, _, _ := strings.Cut(phase, " ")
	switch by := math.Abs(measured - expected); {
	case kind == "hold" && by > 0.01*expected+mib:
		off = append(off, fmt.Sprintf("%s, %s: measured %.1f MiB", c.Target, phase, measured/mib))
	case kind == "spin" && spun < 0.99*expected:
		// Other processes used the CPU. Compare with the usage that the load itself
		// reports. It is an average over a longer time than the measured one.
		if math.Abs(measured-spun) > 0.2*spun {
			off = append(off, fmt.Sprintf("%s, %s: measured %.4f CPUs, the load used %.4f with %.2f CPUs busy", c.Target, phase, measured, spun, busy))
		}
	case kind == "spin" && c.Target == "runsc" && by > share(c.Target)*expected && math.Abs(busy-measured) < 0.02:
		// gVisor has no suitable CPU clock, so the load counts pieces of work. It
		// calibrates their cost at its beginning. If the CPU becomes slower later, the
		// load uses more CPU time than requested. The measured usage must then match the
		// node's.
	case kind == "spin" && by > share(c.Target)*expected:
		off = append(off, fmt.Sprintf("%s, %s: measured %.4f CPUs with %.2f CPUs busy", c.Target, phase, measured, busy))
	}
	if bound := max(0.02*math.Abs(float64(l.Node)), 4*mib) + float64(l.Uncertainty); math.Abs(float64(l.Residual)) > bound {
		off = append(off, fmt.Sprintf("%s, %s: residual %.2f MiB of %.2f, bound %.2f: %+v", c.Target, phase, float64(l.Residual)/mib, float64(l.Node)/mib, bound/mib, l.ResidualBy))
	}
	return off
}

// spun returns the CPU usage that the load of a phase reports.
func spun(rec *record.Record, target, phase string) float64 {
	for i := range rec.Readings {
		if x := &rec.Readings[i]; x.Target == target && x.Phase == phase && x.Moment == record.MomentEnd && x.Work != nil {
			return x.Work.Spun
		}
	}
	return 0
}

// share returns the tolerance of the measured CPU time. gVisor enters and leaves its
// address spaces in the workload's time, and the probe's clock in gVisor has a resolution
// of 10 ms.
func share(target string) float64 {
	if target == "runsc" {
		return 0.06
	}
	return 0.02
}
