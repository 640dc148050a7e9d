package all_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// drawn returns the figures and charts of a stored record.
func drawn(t *testing.T, name string) (figures []figure.Figure, charts map[string]*page.Chart) {
	t.Helper()
	lines := must.Get(all.Instruments.Lines())(t)
	records := must.Get(lines.LoadAll(filepath.Join("..", "..", "..", "record", "testdata", "v1", name+".jsonl")))(t)
	j := must.Get(all.Instruments.Judge(records[0]))(t)
	charts = map[string]*page.Chart{}
	for _, s := range j.Page(page.Options{}).Sections {
		for _, c := range s.Charts {
			charts[c.Name] = c
		}
	}
	return j.Figures(), charts
}

func TestEveryInstrumentHasCharts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"lifecycle":      {"latency-1", "compared-1", "makespan-5", "compared-5", "lanes-5", "batch-create-5", "batch-start-5", "batch-run-5"},
		"overhead":       {"memory-by-role", "memory-by-phase", "CPU-by-phase", "compared", "course-memory", "course-CPU"},
		"storage":        {"ratio-and-verdict", "bandwidth"},
		"storage-import": {"ratio-and-verdict", "bandwidth", "iops"},
		"startup":        {"starts", "parts", "compared"},
		"startup-logs":   {"starts", "parts"},
		"bpf-load":       {"cpu-by-load"},
		"bpf-memory":     {"memory-by-services", "cpu-by-load"},
	} {
		_, charts := drawn(t, name)
		for _, chart := range want {
			check.That(t, charts[chart] != nil, "%s has no %s", name, chart)
		}
		for _, c := range charts {
			check.That(t, slices.Contains(want, c.Name), "%s has %s", name, c.Name)
			if n := len(c.Data); n == 0 || n > page.MostData || c.Title == "" || !strings.HasSuffix(c.Caption, ".") {
				t.Errorf("%s, %s: %d data, %q, %q", name, c.Name, n, c.Title, c.Caption)
			}
		}
	}
}

func TestChartValuesMatchFigures(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"lifecycle", "overhead", "storage", "storage-import", "startup", "startup-logs", "bpf-load", "bpf-memory"} {
		figures, charts := drawn(t, name)
		known := map[figure.Unit]map[[3]float64]bool{}
		add := func(unit figure.Unit, e figure.Estimate) {
			if known[unit] == nil {
				known[unit] = map[[3]float64]bool{}
			}
			if !e.Bounded {
				e.Lo, e.Hi = 0, 0
			}
			known[unit][[3]float64{e.Value, e.Lo, e.Hi}] = true
		}
		for _, f := range figures {
			add(f.Unit, f.Estimate)
			add(figure.Ratio, f.Versus.Ratio())
			for _, r := range f.Rounds {
				add(f.Unit, figure.Exactly(r.Value))
			}
			if f.Quantity == "over-time" {
				for _, v := range f.Series.Values {
					add(f.Unit, figure.Exactly(v))
				}
			}
		}
		for _, c := range charts {
			if c.Name == "ratio-and-verdict" || c.Name == "parts" || strings.HasPrefix(c.Name, "course-") { // have rounds, parts and sums that are no figures
				continue
			}
			for _, d := range c.Data {
				e := figure.Estimate{Value: d.Y}
				if stat.Finite(d.Lo) {
					e.Lo, e.Hi = d.Lo, d.Hi
				}
				if c.Kind != page.Gantt && c.Kind != page.Cumulative && !known[c.Y.Unit][[3]float64{e.Value, e.Lo, e.Hi}] {
					t.Errorf("%s, %s: without a figure: %+v", name, c.Name, d)
				}
			}
		}
	}
}

func TestMemoryByRoleIncludesTheResidual(t *testing.T) {
	t.Parallel()
	figures, charts := drawn(t, "overhead")
	sums, residuals := map[[2]string]float64{}, 0
	for _, d := range charts["memory-by-role"].Data {
		sums[[2]string{d.Panel, d.Group}] += d.Y
		if d.Series == "residual" {
			residuals++
		}
	}
	nodes := 0
	for _, f := range figures {
		if f.Quantity == "node-change" && f.Labels.Get("of") == "node" {
			nodes++
			others := figure.Find(figures, "node-change", "of", "others", "target", f.Labels.Get("target"), "phase", f.Labels.Get("phase"), "sandboxes", f.Labels.Get("sandboxes"))
			for at, sum := range sums {
				if strings.HasPrefix(at[0], f.Labels.Get("phase")+", "+f.Labels.Get("sandboxes")+" ") && at[1] == f.Labels.Get("target") && sum != f.Value-others.Value {
					t.Errorf("%v: stack of %v, node change %v, others %v", at, sum, f.Value, others.Value)
				}
			}
		}
	}
	check.That(t, nodes != 0 && nodes == len(sums) && residuals != 0,
		"%d stacks with %d residuals, and %d changes of the node", len(sums), residuals, nodes)
}

func TestPartsOfAStartAddUpToOne(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"startup", "startup-logs"} {
		figures, charts := drawn(t, name)
		sums := map[string]float64{}
		for _, d := range charts["parts"].Data {
			sums[d.Group] += d.Y
		}
		for target, sum := range sums {
			wall := figure.Find(figures, "wall-time", "target", target)
			check.That(t, slices.ContainsFunc(wall.Rounds, func(r figure.Round) bool { return r.Value == sum }),
				"%s, %s: %v is not the begin of %v", name, target, sum, wall.Rounds)
		}
	}
}

func TestMedianBatchIsDrawn(t *testing.T) {
	t.Parallel()
	figures, charts := drawn(t, "lifecycle")
	for _, op := range []string{"create", "start", "run"} {
		c, ends, rows := charts["batch-"+op+"-5"], map[string]float64{}, map[string]int{}
		for i, d := range c.Data {
			check.That(t, d.X <= d.X2 && (d.Series != "waiting" || d.X == 0) && (d.Series != "under way" || d.X == c.Data[i-1].X2), "%s: %+v", op, d)
			ends[d.Panel], rows[d.Panel] = max(ends[d.Panel], d.X2), rows[d.Panel]+1
		}
		for target, end := range ends {
			f := figure.Find(figures, "makespan", "target", target, "op", op, "lanes", "5")
			closest := math.Inf(1)
			for _, r := range f.Rounds {
				closest = min(closest, math.Abs(r.Value-f.Value))
			}
			check.That(t, rows[target] == 10 && math.Abs(end-f.Value) == closest,
				"%s %s: %d bars to %v, want the median %v", target, op, rows[target], end, f.Value)
		}
	}
	for _, d := range charts["lanes-5"].Data {
		most := figure.Find(figures, "lane-latency", "target", d.Series, "op", d.Panel, "lanes", "5", "quantile", "max")
		check.That(t, d.Y != 1 || d.X == most.Value, "all lanes of %s %s end at %v, but the slowest took %v", d.Series, d.Panel, d.X, most.Value)
	}
}
