//go:build prove

package proof

import (
	"math"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/testing/engines"
)

// A server that keeps 64 KiB of each of 1024 requests has 64 MiB more than it had when it
// was idle, to a hundredth, wherever it runs. gVisor's is charged to its sandbox, with the files that hold
// the guest's memory, and found all the same.
func TestALeakUnderLoadIsFound(t *testing.T) {
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
		if math.Abs(f.Value-most) > 0.01*most {
			t.Errorf("%v: found %.2f MiB", f.Labels, f.Value/mib)
		}
	}
	if seen != len(targets) {
		t.Errorf("%d of %d targets have a figure", seen, len(targets))
	}
}
