package tool

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/transcript"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// add reads all streams of a text.
func add(g *Imported, file, text string, told Told) bool {
	for _, stream := range transcript.Split(text) {
		g.Add(file, stream, told)
	}
	return len(g.Targets)+len(g.Findings) > 0
}

// judged imports texts and judges the result.
func judged(t *testing.T, told Told, files ...string) *lifecycle.Judgement {
	t.Helper()
	g := &Imported{}
	for _, file := range files {
		text := must.Get(os.ReadFile(filepath.Join("testdata", file)))(t)
		check.That(t, add(g, file, string(text), told), "%s: no results", file)
	}
	return judgedOf(t, g)
}

func judgedOf(t *testing.T, g *Imported) *lifecycle.Judgement {
	t.Helper()
	g.Close()
	plan := must.Get(g.Plan.MarshalJSON())(t)
	rec := &record.Record{Header: record.Header{Experiment: lifecycle.Name, Plan: plan}, Targets: g.Targets, Batches: g.Batches, Findings: g.Findings, End: &record.End{Status: "done", Why: "imported"}}
	j := must.Get(lifecycle.Judge(rec))(t)
	return j
}

func TestImportedResultsAreJudged(t *testing.T) {
	t.Parallel()
	const ms = 1e6
	for file, c := range map[string]struct {
		quantity, target, op, lanes string
		n, failed, total            int
		value, trimmed              float64
		unproven                    int
		says                        string // expected finding
	}{
		"hyperfine.json":        {"latency", "x", "run", "1", 4, 2, 6, 40.7 * ms, 40.7 * ms, 0, "2 of 6 failed"},
		"hyperfine-old.json":    {"latency", "x", "run", "1", 3, 0, 0, 101.2 * ms, 101.2 * ms, 3, "hyperfine wrote no exit codes"},
		"critest.json":          {"latency", "x", "runp", "1", 3, 0, 0, 181 * ms, 181 * ms, 9, "left out, because they are not lifecycle operations or not times: StatusPod"},
		"critest-parallel.json": {"mean-latency", "x", "create", "5", 1, 0, 0, 30 * ms, 20 * ms, 12, "failed operations are unknown: critest records only successful lifecycles"},
		"stress.log":            {"time-per-operation", "x", "run", "1", 1, 0, 0, 93.7828125 * ms, 0, 640, "always reports 0 failures"},
		"hyperfine.txt":         {"mean-latency", "x-2", "run", "1", 1, 0, 0, 1212 * ms, 0, 22, "do not count failed runs"},
		"hyperfine.md":          {"mean-latency", "runc", "run", "1", 1, 0, 0, 22.9 * ms, 0, 2, "do not count failed runs"},
		"stress.txt":            {"time-per-operation", "x", "run", "1", 1, 2, 318, 60012. / 318 * ms, 0, 0, "other tools timed"},
		"times.txt":             {"latency", "x", "run", "1", 3, 0, 0, 512 * ms, 512 * ms, 10, "1 results of time were left out, because they are not lifecycle operations or not times: dd if=/dev/zero"},
		"ptcr.txt":              {"mean-latency", "isula", "start", "1", 1, 0, 0, 51 * ms, 51 * ms, 190, "ptcr's table does not record"},
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
			if all := strings.Join(said, "\n"); !strings.Contains(all, c.says) || !strings.Contains(all, "kernels and runtimes are unknown") {
				t.Errorf("no finding with %q:\n%s", c.says, all)
			}
		})
	}
}

func TestLabelsNameTargetsAndRounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		told  Told
		files []string
		want  string
		round int
	}{
		"names from the output":        {Told{File: "x"}, []string{"hyperfine.json"}, "x crun", 6},
		"label before the name":        {Told{Label: "a"}, []string{"hyperfine.json"}, "a a/crun", 6},
		"label replaces a single name": {Told{Label: "a"}, []string{"hyperfine-old.json"}, "a", 3},
		"two texts with one label":     {Told{Label: "a"}, []string{"stress.log", "stress.log"}, "a", 2},
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

func TestJSONBetweenProseIsRead(t *testing.T) {
	t.Parallel()
	g := &Imported{}
	text := "Thanks! With 1.9 I get:\n```\n" + must.Read(t, "testdata/hyperfine-old.json") + "```\nwhich is slow {sic}.\n"
	must.That(t, add(g, "issue.md", text, Told{File: "x"}), "no results")
	f := figure.Find(judgedOf(t, g).Figures(), "latency", "target", "x", "op", "run")
	check.Equal(t, "values", f.Estimate.N, 3)
}

func TestEveryTimeFormatIsParsed(t *testing.T) {
	t.Parallel()
	j := judged(t, Told{File: "x"}, "times.txt")
	for target, want := range map[string]float64{"x-2": 61.5e9, "x-3": 0.3e9, "x-4": 1.234e9, "x-5": 61.23e9, "x-6": 7e9, "x-7": 9e9} {
		f := figure.Find(j.Figures(), "latency", "target", target)
		check.That(t, math.Abs(f.Value-want) < 1000, "%s: %v", target, f.Value)
	}
	check.Equal(t, "targets", len(j.Plan.Targets), 7)
}

func TestSamplesAreLinesOrColumns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		samples Samples
		n       int
		median  float64
		says    string // expected finding or error
	}{
		"one value per line":              {"# ms\n12.5\n\n13\n14.5 ms\n", Samples{Unit: "ms"}, 3, 13e6, "does not record failed operations"},
		"column by name":                  {"run,total,boot\n1,200,90\n2,210,\"95\"\n3,220,100\n", Samples{Unit: "us", Column: "Boot"}, 3, 95e3, ""},
		"column by number":                {"1   0.5 \n2 0.7\n3 0.6\n", Samples{Unit: "s", Column: "2"}, 3, 0.6e9, ""},
		"decimal comma":                   {"n;t\na;1,5\nb;2,5\nc;3,5\n", Samples{Unit: "s", Column: "t"}, 3, 2.5e9, ""},
		"single column with a title":      {"time\n1\n2\n3\n", Samples{Unit: "min"}, 3, 120e9, ""},
		"invalid numbers are skipped":     {"1\n2\n3\ntimeout\n-1\nNaN\n", Samples{Unit: "s", Column: "1"}, 3, 2e9, "3 of the outputs of samples could not be read: line 4"},
		"several columns, none selected":  {"a,b\n1,2\n", Samples{Unit: "s"}, 0, 0, "choose one of a, b"},
		"unknown column":                  {"a,b\n1,2\n", Samples{Unit: "s", Column: "c"}, 0, 0, "choose one of a, b"},
		"numbers without titles":          {"1,2\n1,2\n", Samples{Unit: "s", Column: "3"}, 0, 0, "by its number"},
		"comments only":                   {"# a\n", Samples{Unit: "s"}, 0, 0, "it has no times"},
		"end of an operation is recorded": {"1\n2\n3\n", Samples{Unit: "s", Done: "until wget reached the host"}, 3, 2e9, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &Imported{}
			err := g.AddSamples("a.csv", []byte(c.text), Told{File: "a", Op: "start"}, c.samples)
			if c.n == 0 {
				check.Error(t, err, c.says)
				return
			}
			must.OK(t, err)
			j := judgedOf(t, g)
			f := figure.Find(j.Figures(), "latency", "target", "a", "op", "start")
			check.That(t, f.N == c.n && math.Abs(f.Value-c.median) < 10, "%d values, median %v", f.N, f.Value)
			said := ""
			for _, found := range j.Found {
				said += found.Message
			}
			check.Contains(t, "findings", said, c.says)
			check.Contains(t, "means", g.Targets[0].Operations["start"].Means, c.samples.Done)
		})
	}
}

func TestOtherTextsAreIgnoredAndBrokenOnesReported(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/others.txt", func(t *testing.T, text string) (any, error) {
		g := &Imported{}
		found := add(g, "a.txt", text, Told{File: "a"})
		for _, target := range g.Targets {
			if strings.ContainsRune(target.Name, 0x1b) {
				t.Errorf("invalid target name %q", target.Name)
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
	for _, file := range []string{"hyperfine.json", "critest-parallel.json", "stress.log", "ptcr.txt", "bench.txt", "hyperfine.txt", "hyperfine.md", "stress.txt", "times.txt"} {
		text := must.Get(os.ReadFile(filepath.Join("testdata", file)))(f)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g := &Imported{}
		add(g, "a.txt", string(text), Told{File: "a"})
		for i := range g.Batches {
			check.Error(t, record.Validate(&g.Batches[i]), "")
		}
	})
}
