package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// runInto runs a plan with lifecycle and the toy instrument. The results are in the folder
// "out". toy performs the toy.
func runInto(ctx context.Context, t *testing.T, measures string, toy perform.Func, more ...string) (said string, err error) {
	t.Helper()
	must.Write(t, "p.yaml", "version: 1\nname: weigh\ndescription: what for\nsource: a report\nmeasure:\n"+measures)
	return withToy(ctx, toy, append([]string{"run", "p.yaml", "-o", "out"}, more...)...)
}

// withToy runs a command line of tare with the toy instrument.
func withToy(ctx context.Context, toy perform.Func, args ...string) (said string, err error) {
	var out, errs bytes.Buffer
	with := map[string]performer{"echo": {perform: toy}, "lifecycle": performers["lifecycle"]}
	c := newApp(Streams{Out: &out, Err: &errs}, append(slices.Clone(all.Instruments), echo), with).command(nil)
	c.SetArgs(args)
	err = c.ExecuteContext(ctx)
	return out.String() + errs.String(), err
}

func TestKilledRunKeepsItsPlan(t *testing.T) {
	place(t)
	toy := func(ctx context.Context, o option.Options, weigh perform.Weigh) error {
		at := "after-" + o.(*echoOptions).Word // the document if the run is killed here
		return errors.Join(os.CopyFS(at, os.DirFS("out")), perform.By(shout)(ctx, o, weigh))
	}
	if said, err := runInto(t.Context(), t, "- echo: {word: none}\n- echo: {word: one}\n"+gone, toy); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for at, want := range map[string]string{"after-none": "not started, since there is no record: 1 echo, 2 echo, 3 lifecycle, of 3 measures", "after-one": "not started, since there is no record: 2 echo, 3 lifecycle, of 3 measures", "out": ""} {
		said, _ := withToy(t.Context(), toy, "report", at) // exit status 1 without a record
		if want == "" && strings.Contains(said, "not started") || !strings.Contains(said, want) || want != "" && !strings.Contains(said, "tare run "+at+"/plan.yaml") {
			t.Errorf("%s: %s", at, said)
		}
		if text := must.Read(t, at+"/plan.yaml"); strings.Count(text, "- echo:") != 2 || !strings.Contains(text, "docker/runc") || !strings.Contains(text, `description: "what for"`) {
			t.Errorf("%s: %s", at, text)
		}
	}
}

const gone = "- lifecycle: {targets: [docker/runc], missing: skip, engines: {docker: {address: /none.sock}}}\n"

func TestDocumentListsTheOutcomeOfEveryMeasure(t *testing.T) {
	broken := errors.New("the\x1b[31m disk is full")
	for name, c := range map[string]struct {
		measures string
		odd      func(cancel func()) error // run of the measure with the word "odd"
		code     int
		says     []string
		records  int
	}{
		"all measures succeed":   {"- echo: {}\n- echo: {shouts: 2}\n", nil, ExitDone, []string{"# weigh", "what for", "source: a report", "| 1 echo |", "| 2 echo |", "### environment", "### how to run it again", "name: \"weigh\""}, 2},
		"one measure is skipped": {gone + "- echo: {}\n", nil, ExitDone, []string{"| skipped (target docker/runc: ", "none.sock", "## 2 echo"}, 2},
		"no target is available": {gone, nil, ExitUsage, []string{"| skipped (target docker/runc: "}, 1},
		"a required target is missing": {strings.Replace(gone, "skip", "fail", 1) + "- echo: {}\n", nil, ExitUsage,
			[]string{"| failed (target docker/runc: ", "**error** nothing was measured", "## 2 echo"}, 2},
		"one fails and the others continue": {"- echo: {word: odd}\n- echo: {}\n", func(func()) error { return broken },
			ExitUsage, []string{"failed (the", "disk is full)", "## 2 echo"}, 2},
		"partial result is kept": {"- echo: {word: odd}\n- echo: {}\n",
			func(func()) error {
				must.Write(t, "out/01-echo.jsonl", "measured\n")
				return broken
			}, ExitUsage, []string{"1 of 2 measures here"}, 2},
		"the run is interrupted": {"- echo: {}\n- echo: {word: odd}\n- echo: {}\n",
			func(cancel func()) error {
				cancel()
				return exit{ExitInterrupted}
			}, ExitInterrupted, []string{"interrupted: 2 of 3 measures did not finish", "| interrupted |", "## 3 echo"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			place(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			said, err := runInto(ctx, t, c.measures, func(ctx context.Context, o option.Options, weigh perform.Weigh) error {
				if o.(*echoOptions).Word == "odd" {
					return c.odd(cancel)
				}
				return perform.By(shout)(ctx, o, weigh)
			})
			if code, _ := errors.AsType[exit](err); code.code != c.code || err != nil && code.code == 0 {
				t.Errorf("%v, %+v\n%s", err, code, said)
			}
			text := strings.ReplaceAll(must.Read(t, "out/report.md"), `\`, "")
			check.Contains(t, "text", text, c.says...)
			if strings.Contains(text+said, "\x1b") {
				t.Errorf("escape sequence in\n%s\n%s", text, said)
			}
			if strings.Contains(name, "skipped") && !strings.Contains(said, "measure 1 of 2: no target is available here") {
				t.Error(said)
			}
			if strings.Contains(name, "is kept") && must.Read(t, "out/01-echo.jsonl") != "measured\n" {
				t.Error("a record was overwritten")
			}
			records, _ := filepath.Glob("out/*.jsonl")
			if len(records) != c.records {
				t.Errorf("records %q", records)
			}
			sameAgain(t)
			if _, err := runInto(t.Context(), t, "- echo: {}\n", perform.By(shout)); err == nil || !strings.Contains(err.Error(), "already contains a document or records") {
				t.Errorf("overwritten: %v", err)
			}
		})
	}
}

// sameAgain rebuilds the document from the stored records and compares it with the
// document of the run.
func sameAgain(t *testing.T) {
	t.Helper()
	said, err := withToy(t.Context(), nil, "report", "out", "-o", "again")
	if _, ended := errors.AsType[exit](err); err != nil && !ended {
		t.Fatalf("%v\n%s", err, said)
	}
	made, _ := filepath.Glob("again/*.*")
	pictures, _ := filepath.Glob("again/*/*.*")
	if len(made) < 5 {
		t.Fatalf("only %v", made)
	}
	for _, path := range append(made, pictures...) {
		check.Equal(t, fmt.Sprintf("%s differs", path), must.Read(t, path), must.Read(t, "out"+strings.TrimPrefix(path, "again")))
	}
}

func TestDocumentOverwritesNothing(t *testing.T) {
	place(t)
	path := stored(t, "..", "runc", false)
	refuses(t, []string{"report", path, "-o", ".", "--format", "md"}, "--format: a document has fixed formats")
	for _, name := range []string{"one.html", "zz.md"} {
		refuses(t, []string{"report", path, "-o", name}, "--format html")
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was created", name)
		}
	}
	for _, name := range []string{planFile, "report.md", "figures.csv", "other.jsonl"} {
		must.Write(t, name, "mine")
		refuses(t, []string{"report", path, "-o", "."}, "such as "+name)
		check.Equal(t, fmt.Sprintf("%s was overwritten", name), must.Read(t, name), "mine")
		must.OK(t, os.Remove(name))
	}
	ends(t, ExitDone, "", "report", path, "-o", ".")
	ends(t, ExitUsage, "already contains a document or records", "report", path, "-o", ".")
}

func TestFoldersAndRecordsAreDistinguished(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"there", "there.d"} {
		must.OK(t, os.Mkdir(dir, 0o755))
	}
	must.OK(t, os.WriteFile("plain", nil, 0o600))
	for path, folder := range map[string]bool{
		"": false, "r.jsonl": false, "r.jsonl.zst": false, "r.txt": false, "plain": false, "/dev/null": false,
		"there": true, "there.d": true, "new/": true, "new.d/": true, "new": true, "a/b": true, "a.d/b": true,
	} {
		check.Equal(t, fmt.Sprintf("%q is %v", path, !folder), isFolder(path), folder)
	}
}

func TestPlanAcceptsEveryMeasureFlagAndRecordsIt(t *testing.T) {
	place(t)
	run := newRun(newApp(Streams{}, all.Instruments, nil))
	for _, i := range all.Instruments {
		for _, flag := range option.Of(i.New()).Flags() {
			if run.Flags().Lookup(flag) == nil {
				t.Errorf("tare run has no --%s of %s", flag, i.Name)
			}
		}
	}
	if said, err := runInto(t.Context(), t, gone+"- echo: {}\n", perform.By(shout), "--word", "hi", "--rounds", "2"); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for path, want := range map[string]string{"out/01-lifecycle.jsonl": "rounds", "out/02-echo.jsonl": "word"} {
		rec, err := record.Load(path)
		if err != nil || strings.Join(rec.Header.Of.Flags, " ") != want {
			t.Errorf("%s: %v, %+v", path, err, rec.Header.Of)
		}
	}
	if text := must.Read(t, "out/report.md"); !strings.Contains(text, "**1 lifecycle took** --rounds") || !strings.Contains(text, "**2 echo took** --word") {
		t.Error(text)
	}
}

// Each case has a command line and the estimated cost of each measure of the plan.
func TestExpensivePlanNeedsConfirmation(t *testing.T) {
	golden.Cases(t, filepath.Join(testdata, "ahead.txt"), func(t *testing.T, input string) string {
		line, text, _ := strings.Cut(input, "\n")
		var each []terms.Ahead
		must.OK(t, yaml.UnmarshalWithOptions([]byte(text), &each, yaml.Strict()))
		var said strings.Builder
		s := newApp(Streams{Err: &said}, all.Instruments, nil)
		s.ask = func(_ context.Context, what string) error {
			said.WriteString("asked whether " + what + "\n")
			return errors.New("refused")
		}
		var measures []plan.Measure
		for _, a := range each {
			measures = append(measures, plan.Measure{Name: "echo", Options: &aheadOf{a: a}})
		}
		err := s.ahead(t.Context(), measures, false, strings.HasSuffix(line, "--yes"))
		return said.String() + fmt.Sprint(err)
	})
	s := newApp(Streams{Err: &bytes.Buffer{}}, all.Instruments, nil)
	check.Error(t, s.ask(t.Context(), "the plan writes 1 TiB"), "1 TiB: add --yes")
}

func TestPlanWithLargeWritesNeedsConfirmation(t *testing.T) {
	place(t)
	must.Write(t, "big.yaml", "version: 1\nmeasure:\n- overhead: {targets: [host], phases: [10G], sandboxes: [1], rounds: 1}\n")
	refuses(t, words("run big.yaml -o big/"), "writes at most 80.0 GiB, takes at least 10s", "add --yes")
	if _, err := os.Stat("big"); err == nil {
		t.Error("its folder was created")
	}
}

// aheadOf is echoOptions with a fixed cost estimate.
type aheadOf struct {
	echoOptions
	a terms.Ahead
}

func (o *aheadOf) Ahead(int) terms.Ahead { return o.a }

func TestPlanCostIsEstimated(t *testing.T) {
	t.Parallel()
	bind := storage.Defaults()
	bind.Rounds = 2
	quick := bind // writes for a fixed time
	bind.Jobs = storage.DefaultJobs([]string{"randread", "read", "randwrite", "write"}, []int64{512 << 10}, storage.ToolFio, 1<<30, 8)
	rootfs := bind
	rootfs.Volumes = []string{"rootfs"}
	tmpfs := bind
	tmpfs.Volumes = []string{"tmpfs"}
	loads := overhead.Defaults()
	loads.Phases, loads.Sandboxes, loads.Rounds, loads.Hold = []string{"1G", "spin 1cpu"}, []int{2, 5}, 3, 10*time.Second
	const gib = 1 << 30
	for name, c := range map[string]struct {
		o     interface{ Ahead(int) terms.Ahead }
		bytes float64
		time  time.Duration
	}{
		// Eight threads write 1 GiB each, random and sequential. Files are laid out once.
		"a host folder":        {&bind, (4 + 3*2*16) * gib, 0},
		"a root file system":   {&rootfs, 3 * 2 * (4 + 16) * gib, 0}, // files are laid out for each job
		"memory":               {&tmpfs, 0, 0},
		"time-based jobs":      {&quick, 2 << 28, 3 * 2 * 2 * 1500 * time.Millisecond},
		"sandboxes under load": {&loads, 3 * 3 * 2 * 8 * gib, 3 * 3 * 30 * time.Second},
	} {
		if a := c.o.Ahead(3); a.Bytes != c.bytes || a.Time != c.time || a.Budget == 0 {
			t.Errorf("%s: %+v, wanted %g bytes in %v", name, a, c.bytes, c.time)
		}
	}
}

// The plan ships with tare and uses only what every machine with runc has.
func TestPlanProducesADocument(t *testing.T) {
	needRunc(t)
	text, err := os.ReadFile("../../plans/oci-runtimes.yaml")
	must.OK(t, err)
	place(t)
	few := strings.Replace(string(text), "# targets: []", "targets: [host, floor, runc]", 1)
	must.Write(t, "oci.yaml", few)
	ends(t, ExitDone, "floor|document: out/report.", words("run oci.yaml --lanes 1 --ops create,run --rounds 1 --warmup 0 -q -o out/")...)
	report := must.Read(t, "out/report.md")
	for _, part := range []string{"# oci-runtimes", "The life of a container on every runtime found", "| runc | version |", "what was timed", "one at a time, 1 round", "figures/latency-1.svg", "what to mistrust", "tare run plan.yaml -o again/"} {
		check.Contains(t, "report", report, part)
	}
	if !strings.Contains(report, "](<figures/latency-1.svg>)") || !strings.HasPrefix(must.Read(t, "out/figures/latency-1.svg"), "<svg ") {
		t.Errorf("no figures in\n%s", report)
	}
	sameAgain(t)
	var p *plan.Plan
	if p, err = plan.Parse("plan.yaml", []byte(must.Read(t, "out/plan.yaml")), all.Instruments); err != nil || len(p.Measure) != 1 || p.Name != "oci-runtimes" {
		t.Errorf("%v, %+v", err, p)
	}
}
