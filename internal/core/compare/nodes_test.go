package compare

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// over adds one node per change, all with latencies near 100, and renders their page.
func over(t *testing.T, changes ...func(*Run)) (*Nodes, string) {
	t.Helper()
	n := must.Get(NewNodes("node", Headline))(t)
	for i, change := range changes {
		run := machine(fmt.Sprint(i), map[string]float64{"runc": 100 + float64(i%3)}, change)
		n.Add(fmt.Sprintf("n%d", i), &run, 0, 12, nil)
	}
	var out strings.Builder
	must.OK(t, page.Write(&out, "text", n.Pages(), page.Options{Verbose: true}))
	return n, out.String()
}

func many(n int, of func(i int) func(*Run)) (out []func(*Run)) {
	for i := range n {
		out = append(out, of(i))
	}
	return out
}

func TestNodeDifferencesAreGrouped(t *testing.T) {
	t.Parallel()
	_, out := over(t, many(12, func(i int) func(*Run) {
		return func(r *Run) {
			if i%2 == 0 {
				r.Header.Environment.Kernel, r.Header.Environment.OS = "6.18.0", "Debian 13"
			}
			r.Header.Environment.Memory += int64(i) << 20 // the difference is as small as between kernels
			r.Header.Environment.KernelBuild = fmt.Sprintf("#%d", i)
		}
	})...)
	for want, n := range map[string]int{"kernel is confounded with OS": 1, "differs from node to node: kernel build": 1, "6.18.0": 1, "EPYC": 0, "Debian": 0, "outliers: none": 1} {
		if got := strings.Count(out, want); got != n {
			t.Errorf("%q occurs %d times, want %d\n%s", want, got, n, out)
		}
	}
	if _, out := over(t, many(3, func(int) func(*Run) { return nil })...); !strings.Contains(out, "the nodes are alike") || !strings.Contains(out, "not detectable with fewer than 10 nodes") {
		t.Error(out)
	}
}

func TestOtherMeasurementsHaveTheirOwnPage(t *testing.T) {
	t.Parallel()
	n, _ := over(t, many(6, func(i int) func(*Run) {
		return func(r *Run) {
			limits, rounds := i%2, i // rounds change how much is measured, not what
			r.Header.Plan = json.RawMessage(fmt.Sprintf(`{"title":"plan %d","lanes":[1],"limits":{"memory":%d},"rounds":%d}`, limits, limits, rounds))
		}
	})...)
	pages := n.Pages()
	if len(pages) != 2 || pages[0].Title != "plan 0" || pages[1].Title != "plan 1" || !strings.Contains(pages[1].Head[0], "over 3 nodes") {
		t.Errorf("%d pages, %+v", len(pages), pages)
	}
}

func TestRecordsOfANodeAreReducedToTheirMedian(t *testing.T) {
	t.Parallel()
	n := must.Get(NewNodes("node", Headline))(t)
	for i, level := range []float64{100, 300, 200, 50} {
		run := machine(fmt.Sprint(i), map[string]float64{"runc": level}, nil)
		n.Add([]string{"a", "a", "a", "b"}[i], &run, i%2, 12, nil)
	}
	got := map[string]figure.Figure{}
	for _, f := range n.Figures() {
		if f.Quantity == "latency" {
			got[f.Labels.Get("nodes")] = f
		}
	}
	if most := got["max"]; most.N != 2 || most.Value < 200 || most.Value > 201 || most.Labels.Get("node") != "a" {
		t.Errorf("%+v", most)
	}
	if least := got["min"]; least.Value > 51 || least.Labels.Get("node") != "b" {
		t.Errorf("%+v", least)
	}
	if p := n.Pages()[0]; !strings.Contains(p.Head[0], "2 nodes · 4 records · failed 2/48") || p.Answer[len(p.Answer)-1] != "2 of 48 operations failed, on a, b." {
		t.Errorf("%q, %q", p.Head, p.Answer)
	}
}

func TestRarePropertyIsReportedForAnOutlier(t *testing.T) {
	t.Parallel()
	n := must.Get(NewNodes("node", Headline))(t)
	for i := range 40 {
		level, found := 100+float64(i%5), []record.Finding{{Code: "everywhere", Message: "on all"}}
		if i == 7 {
			level, found = 200, append(found, record.Finding{Code: "throttled", Message: "for \x1b[31m3 s"})
		}
		run := machine(fmt.Sprint(i), map[string]float64{"runc": level}, func(r *Run) {
			if i == 7 {
				r.Header.Environment.Governor = "powersave"
			}
		})
		n.Add(fmt.Sprintf("n%d", i), &run, map[bool]int{true: 3}[i == 7], 12, found)
	}
	all := n.Findings()
	if len(all) != 1 || !strings.HasPrefix(all[0].Message, "n7: ") {
		t.Fatalf("%+v", all)
	}
	check.Contains(t, "Advice", all[0].Advice, "governor powersave (1 of 40 nodes)", "throttled: for", "failed 3/12 (1 of 40 nodes)")
	check.Lacks(t, "advice", all[0].Advice, "everywhere")
	for _, format := range page.Formats {
		var out strings.Builder
		if err := page.Write(&out, format, n.Pages(), page.Options{}); err != nil || strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), "powersave") {
			t.Errorf("%s: %v\n%s", format, err, out.String())
		}
	}
}

// Two fleets of a thousand machines with a few types are compared type by type.
func TestManyRunsHaveFewKinds(t *testing.T) {
	t.Parallel()
	side := func(name, kernel string) Side {
		s := Side{Name: name}
		for i := range 300 {
			s.Runs = append(s.Runs, machine(fmt.Sprint(name, i), map[string]float64{"runc": 100 + float64(i%7)}, func(r *Run) {
				r.Header.Environment.Kernel = kernel
				r.Header.Environment.Memory += int64(i) << 10
				if i%3 == 0 {
					r.Header.Environment.Governor = "powersave"
				}
			}))
		}
		return s
	}
	c := compared(t, Options{Unlike: true}, side("old", "6.1.0"), side("new", "6.18.0"))
	if len(c.unlike) > 16 {
		t.Errorf("compared %d pairs of runs, want at most 16", len(c.unlike))
	}
	for _, want := range []string{"on kernel and system, in which the records differ"} {
		check.Equal(t, "verdicts", strings.Join(c.Tables[0].Rows[0].Of[1].Reasons, " "), want)
	}
}

func TestRecordsOfOneMachineAreNotNodes(t *testing.T) {
	for name, c := range map[string]struct {
		unnamed bool
		kernels [2]string
		cpus    [2]int
		want    string
	}{
		"named by a label":                   {false, [2]string{"6.1", "6.1"}, [2]int{2, 2}, "over 2 nodes"},
		"named by files, same machine":       {true, [2]string{"6.1", "6.1"}, [2]int{2, 2}, "over 2 records"},
		"named by files, different machines": {true, [2]string{"6.1", "6.1"}, [2]int{2, 4}, "over 2 nodes"},
	} {
		n := must.Get(NewNodes("node", Headline))(t)
		n.Unnamed = c.unnamed
		for i := range 2 {
			run := Run{Header: record.Header{Experiment: "lifecycle", Environment: record.Environment{Kernel: c.kernels[i], CPUs: c.cpus[i]}}}
			n.Add(string(rune('a'+i)), &run, 0, 0, nil)
		}
		check.Contains(t, name, n.Pages()[0].Head[0], c.want)
	}
}
