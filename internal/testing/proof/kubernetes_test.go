//go:build prove

package proof

import (
	"math"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/cluster"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/record"
)

// Pods of a kubelet must use as much memory as pods that tare creates on an engine of the
// same kind. Both run on the same machine and in the same rounds. The growth of a daemon,
// such as the kubelet, does not count.
func TestKubeletPodsUseAsMuchAsCRIPods(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	containerd := engines.Containerd(t, engines.V2)
	const kubelets, own = "kubernetes/runc", "cri+containerd/runc"
	phases := []string{"idle", "hold 64MiB"}
	_, judged, _ := tare(folders(t), overhead.Judge, "overhead", kubelets, own, "--phases", "idle,hold 64MiB", "--sandboxes", "1",
		"--rounds", "8", "--hold", "2s", "--settle", "1s", "--limit", "cpu=1,memory=256Mi",
		"--kubeconfig", c.Kubeconfig, "--node", c.Nodes[0].Name, "--node-cri", c.Nodes[0].CRI, "--cri", "containerd=unix://"+containerd.Address)
	figures := judged[0].Figures()
	for _, phase := range phases {
		sums := map[string]map[int]float64{kubelets: {}, own: {}}
		for _, f := range figures {
			if f.Quantity != "role-memory" || f.Labels.Get("phase") != phase || !ledger.Own(record.Role(f.Labels.Get("role"))) && f.Labels.Get("role") != string(record.RoleKernel) {
				continue
			}
			for _, r := range f.Rounds {
				sums[f.Labels.Get("target")][r.Round] += r.Value
			}
		}
		var differences, owns []float64
		for round, v := range sums[own] {
			if of, ok := sums[kubelets][round]; ok {
				differences, owns = append(differences, of-v), append(owns, v)
			}
		}
		d, all := figure.MedianOf(differences), figure.MedianOf(owns)
		t.Logf("%s: %.2f MiB by CRI; kubelet %+.2f MiB [%+.2f, %+.2f] in %d rounds", phase, all.Value/mib, d.Value/mib, d.Lo/mib, d.Hi/mib, len(differences))
		check.That(t, len(differences) >= 6, "%s: only %d rounds have both", phase, len(differences))
		check.That(t, d.Lo <= 0 && d.Hi >= 0 || math.Abs(d.Value) <= 0.03*all.Value+0.25*mib,
			"%s: the pods differ: %v", phase, slices.Sorted(slices.Values(differences)))
	}
}
