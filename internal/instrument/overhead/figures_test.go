package overhead

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

func TestEveryFigureOfOverheadCanBeRead(t *testing.T) {
	t.Parallel()
	j := four()
	l := &j.Tables[0].Cells[0].Ledger
	l.Reconcile = []ledger.Reconcile{{Charge: record.ChargePod, Kind: "anon", Group: 5, Processes: 3}}
	l.Problems = record.Problems{Denied: 2, Examples: []string{"permission denied"}}
	seen := map[string][]string{}
	for _, f := range j.Figures() {
		if unit := string(f.Unit); !slices.Contains(seen[f.Quantity], unit) {
			seen[f.Quantity] = append(seen[f.Quantity], unit)
		}
		if f.Experiment != Name || f.Labels.Get("target") == "" || !f.Known() && f.Series == nil && f.Quantity != "per-sandbox" {
			t.Errorf("%+v", f)
		}
	}
	got := map[string]string{}
	for quantity, units := range seen {
		slices.Sort(units)
		got[quantity] = strings.Join(units, " ")
	}
	want := map[string]string{
		"memory": "bytes", "residual": "bytes", "cpu": "cpus",
		"role-memory": "bytes", "role-memory-of-kind": "bytes", "role-processes": "count", "role-cpu": "cpus",
		"groups": "count", "group-usage": "bytes", "group-usage-of-kind": "bytes", "group-peak": "bytes", "group-highest": "bytes", "group-limit": "bytes", "group-throttled": "ns",
		"charged-memory": "bytes", "charged-groups": "count", "charged-processes": "count", "reconciled-memory": "bytes",
		"engine-memory": "bytes", "engine-cpu": "cpus",
		"node-change": "bytes", "residual-of-kind": "bytes", "page-cache": "bytes", "node-available": "bytes", "node-busy": "cpus", "node-steal": "cpus",
		"node-io": "bytes/s", "node-load": "load", "node-pressure": "ratio", "not-read": "count",
		"load": "bytes cpus", "over-time": "bytes cpus",
		"per-sandbox": "bytes cpus", "fixed": "bytes cpus", "more-fit": "count", "pod-fixed": "bytes cpus", "checked": "bytes cpus", "needed": "bytes cpus",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestFiguresHaveTheValuesOfTheBooks(t *testing.T) {
	t.Parallel()
	j := four()
	for _, tt := range []struct {
		quantity string
		labels   []string
		want     float64
	}{
		{"role-memory-of-kind", []string{"target", "containerd/kata", "phase", "idle", "sandboxes", "1", "role", "vmm", "kind", "anon"}, float64(mebi(336))},
		{"role-cpu", []string{"target", "containerd/kata", "phase", "1G", "role", "vcpu"}, 0.812},
		{"group-usage", []string{"target", "containerd/kata", "phase", "idle", "sandboxes", "5", "charge", "overhead"}, float64(mebi(1855))},
		{"engine-memory", []string{"target", "docker/runc", "phase", "idle", "sandboxes", "1", "source", "docker stats", "of", "reported"}, float64(mebi(1.1))},
		{"node-change", []string{"target", "runc", "phase", "idle", "of", "residual"}, float64(mebi(0.1))},
		{"load", []string{"target", "runc", "phase", "hold 64MiB", "of", "expected"}, 64 << 20},
		{"load", []string{"target", "runc", "phase", "spin 0.5cpu", "of", "measured"}, 0.5},
		{"more-fit", []string{"target", "containerd/kata"}, 76},
		{"pod-fixed", []string{"target", "containerd/kata", "handler", "kata", "resource", "cpu"}, 0.25},
		{"needed", []string{"target", "containerd/kata", "phase", "1G", "resource", "cpu"}, 0.289},
	} {
		if f := figure.Find(j.Figures(), tt.quantity, tt.labels...); f.Value != tt.want {
			t.Errorf("%s %v: %v, want %v", tt.quantity, tt.labels, f.Value, tt.want)
		}
	}
	all := weighed(t, oversee(nil)).Figures()
	if role := figure.Find(all, "role-memory", "role", "shim"); len(role.Rounds) != 3 || role.Rounds[1].Value != role.Value {
		t.Errorf("a role's memory has the values %v", role.Rounds)
	}
	rounds := all[0]
	if want := []figure.Round{{Round: 0, Value: float64(8 * mi)}, {Round: 1, Value: float64(8 * mi)}, {Round: 2, Value: float64(8 * mi)}}; !slices.Equal(rounds.Rounds, want) || rounds.Total != 3 || rounds.Better != figure.Less {
		t.Errorf("%+v", rounds)
	}
}
