package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// judged imports texts and judges what they make.
func judged(t *testing.T, told Told, files ...string) *lifecycle.Judgement {
	t.Helper()
	g := &Imported{}
	for _, file := range files {
		text := must.Get(os.ReadFile(filepath.Join("testdata", file)))(t)
		if !g.Add(file, text, told) {
			t.Errorf("%s: nothing was found", file)
		}
	}
	g.Close()
	plan := must.Get(g.Plan.MarshalJSON())(t)
	rec := &record.Record{Header: record.Header{Experiment: lifecycle.Name, Plan: plan}, Targets: g.Targets, Batches: g.Batches, Findings: g.Findings, End: &record.End{Status: "done", Why: "imported"}}
	j := must.Get(lifecycle.Judge(rec))(t)
	return j
}

func TestWhatToolsToldIsJudgedAsItsFormSays(t *testing.T) {
	t.Parallel()
	const ms = 1e6
	for file, c := range map[string]struct {
		quantity, target, op, lanes string
		n, failed, total            int
		value, trimmed              float64
		unproven                    int
		says                        string // in findings
	}{
		"hyperfine.json":        {"latency", "x", "run", "1", 4, 2, 6, 40.7 * ms, 40.7 * ms, 0, "2 of 6 failed"},
		"hyperfine-old.json":    {"latency", "x", "run", "1", 3, 0, 0, 101.2 * ms, 101.2 * ms, 3, "hyperfine wrote no exit codes"},
		"critest.json":          {"latency", "x", "runp", "1", 3, 0, 0, 181 * ms, 181 * ms, 9, "left out, which are of no operation of a lifecycle or no time: StatusPod"},
		"critest-parallel.json": {"mean-latency", "x", "create", "5", 1, 0, 0, 30 * ms, 20 * ms, 12, "cannot be known"},
		"stress.log":            {"time-per-operation", "x", "run", "1", 1, 0, 0, 93.7828125 * ms, 0, 640, "0 failures whatever happened"},
		"ptcr.txt":              {"mean-latency", "isula", "start", "1", 1, 0, 0, 51 * ms, 51 * ms, 190, "ptcr's table has no word"},
		"bench.txt":             {"latency", "runc", "create", "1", 2, 0, 0, 41.05 * ms, 0, 102, "Unpack-8"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			j := judged(t, Told{File: "x"}, file)
			f := figure.Find(j.Figures(), c.quantity, "target", c.target, "op", c.op, "lanes", c.lanes)
			if d := f.Value - c.value; f.Estimate.N != c.n || d > 1 || d < -1 || f.Failed != c.failed || f.Total != c.total || j.Unproven != c.unproven {
				t.Errorf("%d values, %v, %d/%d failed, %d unproven", f.Estimate.N, f.Value, f.Failed, f.Total, j.Unproven)
			}
			trimmed := figure.Find(j.Figures(), "trimmed-mean", "target", c.target, "op", c.op, "lanes", c.lanes)
			if d := trimmed.Value - c.trimmed; trimmed.Known() != (c.trimmed > 0) || c.trimmed > 0 && (d > ms || d < -ms) {
				t.Errorf("the trimmed mean is %v", trimmed.Value)
			}
			var said []string
			for _, found := range j.Found {
				said = append(said, found.Message)
			}
			if all := strings.Join(said, "\n"); !strings.Contains(all, c.says) || !strings.Contains(all, "kernels and runtimes are not known") {
				t.Errorf("findings do not say %q:\n%s", c.says, all)
			}
		})
	}
}

func TestLabelsNameTargetsAndTextsOfOneLabelAreRounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		told  Told
		files []string
		want  string
		round int
	}{
		"outputs name themselves":          {Told{File: "x"}, []string{"hyperfine.json"}, "x crun", 6},
		"a label stands before their name": {Told{Label: "a"}, []string{"hyperfine.json"}, "a a/crun", 6},
		"a label replaces one name":        {Told{Label: "a"}, []string{"hyperfine-old.json"}, "a", 3},
		"two texts of one label":           {Told{Label: "a"}, []string{"stress.log", "stress.log"}, "a", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := judged(t, c.told, c.files...)
			if got := strings.Join(j.Plan.Targets, " "); got != c.want || j.Plan.Rounds != c.round {
				t.Errorf("targets %q in %d rounds", got, j.Plan.Rounds)
			}
		})
	}
}

func TestOtherTextsAreLeftAloneAndBrokenOnesAreFindings(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/others.txt", func(t *testing.T, text string) (any, error) {
		g := &Imported{}
		found := g.Add("a.txt", []byte(text), Told{File: "a"})
		for _, target := range g.Targets {
			if strings.ContainsRune(target.Name, 0x1b) {
				t.Errorf("a target is called %q", target.Name)
			}
		}
		var said []string
		for _, f := range g.Findings {
			said = append(said, f.Message)
		}
		return fmt.Sprintf("found: %v %q", found, said), nil
	})
}

func FuzzTexts(f *testing.F) {
	for _, file := range []string{"hyperfine.json", "critest-parallel.json", "stress.log", "ptcr.txt", "bench.txt"} {
		text := must.Get(os.ReadFile(filepath.Join("testdata", file)))(f)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g := &Imported{}
		g.Add("a.txt", text, Told{File: "a"})
		for i := range g.Batches {
			check.Error(t, record.Validate(&g.Batches[i]), "")
		}
	})
}
