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

// What a probe was told to hold and to use is found, and the node's change is
// explained: on the host, the floor, and bare runtimes.
func TestWhatAProbeHoldsAndUsesIsFoundInRuntimes(t *testing.T) {
	calibrate(t, append([]string{"host", "floor", "runc", "crun"}, runsc()...),
		"idle,hold 64MiB,hold 256MiB,hold 1024MiB,spin 0.25cpu,spin 1cpu")
}

// And in the containers and pods of engines.
func TestWhatAProbeHoldsAndUsesIsFoundInEngines(t *testing.T) {
	targets := []string{"docker/runc", "podman/crun", "containerd/runc", "cri+containerd/runc", "cri+cri-o/crun"}
	calibrate(t, targets, "idle,hold 256MiB,spin 0.25cpu", fleetFlags(t, targets...)...)
}

// calibrate weighs loads of known size on targets, and checks every figure.
func calibrate(t *testing.T, targets []string, phases string, flags ...string) {
	for target, off := range weigh(t, targets, phases, flags...) {
		for _, why := range off {
			t.Errorf("%s: %s", target, why)
		}
	}
}

// weigh returns what is off, by target.
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

// outOfBounds lists what of a cell differs from the load by more than 1 % and 1 MiB, or 2 %
// of CPU time, and a residual beyond 2 % of the node's change or 4 MiB, and what the node
// wavered by.
func outOfBounds(phase string, c *overhead.Cell, spun float64) (off []string) {
	l := &c.Ledger
	if !l.Complete {
		off = append(off, fmt.Sprintf("%s, %s: incomplete: %+v", c.Target, phase, l.Problems))
	}
	kind, _, _ := strings.Cut(phase, " ")
	switch by := math.Abs(c.Measured - c.Expected); {
	case kind == "hold" && by > 0.01*c.Expected+mib:
		off = append(off, fmt.Sprintf("%s, %s: found %.1f MiB", c.Target, phase, c.Measured/mib))
	case kind == "spin" && spun < 0.99*c.Expected:
		// Others took the CPU. Then what it says that it used is the truth, on
		// average over a time that is longer than that in which it was watched.
		if math.Abs(c.Measured-spun) > 0.2*spun {
			off = append(off, fmt.Sprintf("%s, %s: found %.4f, it used %.4f with %.2f CPUs busy", c.Target, phase, c.Measured, spun, l.NodeCPU))
		}
	case kind == "spin" && c.Target == "runsc" && by > share(c.Target)*c.Expected && math.Abs(l.NodeCPU-c.Measured) < 0.02:
		// gVisor has no clock of CPU time that would do: there the load counts pieces of
		// work, by what one took at its begin, and uses more than it was told on a CPU
		// that has become slower since. What was found is then what the node was busy.
	case kind == "spin" && by > share(c.Target)*c.Expected:
		off = append(off, fmt.Sprintf("%s, %s: found %.4f with %.2f CPUs busy", c.Target, phase, c.Measured, l.NodeCPU))
	}
	if bound := max(0.02*math.Abs(float64(l.Node)), 4*mib) + float64(l.Uncertainty); math.Abs(float64(l.Residual)) > bound {
		off = append(off, fmt.Sprintf("%s, %s: residual %.2f MiB of %.2f, bound %.2f: %+v", c.Target, phase, float64(l.Residual)/mib, float64(l.Node)/mib, bound/mib, l.ResidualBy))
	}
	return off
}

// spun is what the load of a phase says it used itself.
func spun(rec *record.Record, target, phase string) float64 {
	for i := range rec.Readings {
		if x := &rec.Readings[i]; x.Target == target && x.Phase == phase && x.Moment == record.MomentEnd && x.Work != nil {
			return x.Work.Spun
		}
	}
	return 0
}

// share is how far the CPU time that was found may be off. gVisor enters and
// leaves its address spaces in the workload's own time, and its clock, by which
// the probe goes, has steps of 10 ms.
func share(target string) float64 {
	if target == "runsc" {
		return 0.06
	}
	return 0.02
}
