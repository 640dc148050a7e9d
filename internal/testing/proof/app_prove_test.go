//go:build prove

package proof

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/app"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// The scheduler gives each of two busy processes half of a CPU. A server with such a
// neighbour therefore gets half of the CPU time of both. On a quiet machine it also
// answers half as many requests, within a few percent. The clients run on the same CPU
// and use at most 5 % of it, so the share may be up to 0.525.
func TestNeighbourGetsItsSchedulerShare(t *testing.T) {
	p := folders(t)
	path := filepath.Join(p.dir, "half.jsonl")
	self := must.Get(os.Executable())(t)
	c := exec.CommandContext(t.Context(), "taskset", "-c", "1", self, "app", "floor", "runc", "--command", "/probe serve 8080 work=2000", "-c", "4", "-t", "2s", "--warm", "300ms",
		"--rounds", "12", "--neighbour", "spin 1cpu", "-q", "-o", path)
	c.Env = append(c.Environ(), tareEnv+"=1")
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	must.OK(t, err)
	rec, j := stored(p, path, app.Judge)
	for _, target := range []string{"floor", "runc"} {
		var halves, had []float64 // share of the two; usage of the CPU by them and the clients
		for _, w := range record.All[app.Window](rec) {
			if w.Target != target || w.Neighbour == "" || w.Failure != nil {
				continue
			}
			for _, r := range w.Seen.CPU {
				if r.Role == record.RoleWorkload && w.BesideCPU != nil {
					both := float64(r.NS + *w.BesideCPU)
					halves, had = append(halves, float64(r.NS)/both), append(had, (both+float64(w.ClientCPU))/float64(w.Seen.Took))
				}
			}
		}
		if len(halves) != 12 {
			t.Errorf("%s: %d windows", target, len(halves))
			continue
		}
		half, all := stat.Quantiles(halves, 0.5)[0], stat.Quantiles(had, 0.5)[0]
		kept := figure.Find(j.Figures(), "throughput-kept", "target", target)
		t.Logf("%s: %.4f of the CPU time of both, %.4f [%.4f, %.4f] × alone; both used %.2f of the CPU", target, half, kept.Value, kept.Lo, kept.Hi, all)
		check.That(t, math.Abs(half-0.5) <= 0.02, "%s: the server had %.4f of the CPU time of both", target, half)
		most := 0.1 // distance of the interval from half; an interval may miss the truth
		if all < 0.95 {
			most = 0.5 // others used a varying part of the CPU
		}
		check.That(t, kept.Bounded && kept.Lo <= 0.5+most && kept.Hi >= 0.5-most/2 && kept.Hi-kept.Lo <= most,
			"%s: kept %.4f [%.4f, %.4f] of the requests", target, kept.Value, kept.Lo, kept.Hi)
	}
}

// A server that keeps 64 KiB for each of 1024 requests grows by 64 MiB within 1 %, on
// every target. With gVisor, this memory is charged to the sandbox together with the
// files of the guest's memory. It must be found there as well.
func TestLeakUnderLoadIsFound(t *testing.T) {
	targets := []string{"host", "floor", "runc", "crun", "docker/runc", "podman/crun", "containerd/runc", "cri+containerd/runc", "cri+cri-o/crun", "runsc=" + engines.Runsc()}
	args := append([]string{"overhead", "--sandboxes", "1", "--rounds", "1", "--hold", "500ms", "--settle", "200ms", "--command", "/probe serve 18080 leak=65536",
		"--host-command", "/probe serve 18080 leak=65536", "--load", "http://:18080/", "--rate", "256", "-t", "4s"}, fleetFlags(t, targets...)...)
	_, judged, _ := tare(folders(t), overhead.Judge, append(args, targets...)...)
	const most = 1024 * 65536.0
	seen := 0
	for _, f := range judged[0].Figures() {
		if f.Quantity != "memory-above-idle" {
			continue
		}
		seen++
		t.Logf("%v: %.2f MiB", f.Labels, f.Value/mib)
		check.That(t, math.Abs(f.Value-most) <= 0.01*most, "%v: measured %.2f MiB", f.Labels, f.Value/mib)
	}
	check.Equal(t, "seen", seen, len(targets))
}
