//go:build prove

package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// spread is the run-to-run variation of identical targets. all is common to all targets,
// each is separate for each operation of a target, and load adds a changing load that
// slows each target differently.
type spread struct {
	name      string
	all, each float64
	load      bool
}

// lifecycleRun simulates a record of crun, floor and host.
func lifecycleRun(r *rand.Rand, id string, s spread, shift float64) Run {
	run := Run{Header: record.Header{RunID: id, Experiment: "lifecycle", Version: "v1", Plan: json.RawMessage(`{"lanes":[1]}`),
		Environment: record.Environment{Kernel: "6.1.0", Arch: "amd64", CPUModel: "EPYC", CPUs: 4, Memory: 1 << 30}}}
	common, load := math.Exp(s.all*r.NormFloat64()), make([]float64, 20)
	level := 0.0
	for i := range load {
		if s.load && (i == 0 || r.IntN(10) == 0) { // it changes between runs and within them
			level = float64(r.IntN(4))
		}
		load[i] = level
	}
	for _, t := range []struct {
		name, kind         string
		base, noise, feels float64
	}{{"host", "host", 70e3, 0.08, 0.1}, {"floor", "floor", 1e6, 0.06, 0.2}, {"crun", "oci", 14e6, 0.08, 0.3}} {
		run.Targets = append(run.Targets, record.Target{Name: t.name, Kind: t.kind})
		for _, op := range []string{"run", "start", "stop"} {
			own, values := common*math.Exp(s.each*r.NormFloat64()), stat.Rounds{}
			if t.kind == "oci" {
				own *= shift
			}
			for i := range load {
				values[i] = t.base * own * (1 + t.feels*load[i]) * math.Exp(t.noise*(1+load[i])*r.NormFloat64())
			}
			run.Figures = append(run.Figures, figure.Figure{Experiment: "lifecycle", Quantity: "latency", Unit: figure.Nanoseconds, Better: figure.Less,
				Labels: figure.Of("target", t.name, "op", op, "lanes", "1"), Rounds: figure.ByRound(values), Estimate: figure.Median(values)})
		}
	}
	return run
}

// TestVerdictsAreRarelyFalse simulates 200 pairs of each kind, with a
// gate of 5 % on crun's three operations.
func TestVerdictsAreRarelyFalse(t *testing.T) {
	const pairs = 200
	decided := map[stat.Decision]int{}
	gate := func(old, new, earlier []Run, plainly bool) {
		c := must.Get(New([]Side{{"old", old}, {"new", new}}, Options{Filter: "target:crun", Earlier: earlier}))(t)
		g := must.Get(c.Gate(0.05))(t)
		if plainly { // treats single runs as a sufficient basis
			g.Decision = stat.Passed
			var sides []stat.Sides
			for _, p := range c.pairs {
				sides = append(sides, p.sides())
			}
			for _, one := range stat.GateAll(sides, []float64{0.05, 0.05, 0.05}, stat.Holm) {
				g.add(figure.Figure{}, one.Decision, "")
			}
		}
		decided[g.Decision]++
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-36s%-12s%10s%10s%12s%12s\n", "", "", "worse", "not worse", "worse", "not worse")
	for k, s := range []spread{
		{"runs differ by 3 %", 0.03, 0, false}, {"runs differ by 5 %", 0.05, 0, false}, {"runs differ by 10 %", 0.10, 0, false},
		{"each figure by 3 %", 0, 0.03, false}, {"each figure by 5 %", 0, 0.05, false}, {"each figure by 10 %", 0, 0.10, false},
		{"load varies", 0, 0.01, true}, {"changing load, runs differ by 5 %", 0.05, 0.01, true}, {"nothing differs", 0, 0, false},
	} {
		for _, way := range []string{"plainly", "control", "earlier", "runs"} {
			var share [2][2]float64
			for truth, shift := range []float64{1, 1.10} {
				clear(decided)
				r := rand.New(rand.NewPCG(2020, uint64(100*k+truth)))
				for range pairs {
					n, ids := map[string]int{"runs": 3}[way], 0
					draw := func(n int, shift float64) (out []Run) {
						for range n {
							ids++
							out = append(out, lifecycleRun(r, fmt.Sprint("r", ids), s, shift))
						}
						return out
					}
					var earlier []Run
					if way == "earlier" {
						earlier = draw(5, 1)
					}
					gate(draw(max(n, 1), 1), draw(max(n, 1), shift), earlier, way == "plainly")
				}
				share[truth] = [2]float64{100 * float64(decided[stat.Regressed]) / pairs, 100 * float64(decided[stat.Passed]) / pairs}
			}
			name := map[string]string{"plainly": s.name}[way]
			fmt.Fprintf(&table, "%-36s%-12s%8.1f %%%8.1f %%%10.1f %%%10.1f %%\n", name, way, share[0][0], share[0][1], share[1][0], share[1][1])
			if way != "plainly" && (share[0][0] > 5 || share[1][1] > 2) {
				t.Errorf("%s, %s: %.1f %% of equal runs are worse, %.1f %% of runs that are 10 %% slower pass", s.name, way, share[0][0], share[1][1])
			}
		}
	}
	t.Log("\n" + table.String())
}
