package lifecycle_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

var update = flag.Bool("update", false, "write the golden files anew")

func rendered(t *testing.T, r *run, format string, o page.Options) string {
	t.Helper()
	return renderedAll(t, format, o, r)
}

func renderedAll(t *testing.T, format string, o page.Options, runs ...*run) string {
	t.Helper()
	var all []instrument.Judged
	for _, r := range runs {
		rec, l := r.judged(t)
		all = append(all, instrument.Judged{Record: rec, Judgement: l})
	}
	var out bytes.Buffer
	if err := (instrument.List{lifecycle.Instrument}).Report(&out, format, all, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var forms = []string{"text", "md", "csv", "json"}

func TestReportsAreAsTheGoldenFilesHaveThem(t *testing.T) {
	tests := []struct {
		file   string
		record func() *run
		format string
		o      page.Options
	}{
		{"pair-lanes.txt", func() *run { return pair(1, 100) }, "text", page.Options{Width: 120}},
		{"pair-verbose.txt", func() *run { return pair(1) }, "text", page.Options{Width: 100, Verbose: true}},
		{"pair-colour.txt", failing, "text", page.Options{Width: 100, Colour: true}},
		{"six-80.txt", six, "text", page.Options{Width: 80}},
		{"failing.txt", failing, "text", page.Options{Width: 100}},
		{"guest.txt", guest, "text", page.Options{Width: 100}},
		{"hostile.txt", hostile, "text", page.Options{Width: 120}},
		{"empty.txt", func() *run { return newRun([]int{1}, subject.ContainerOps...) }, "text", page.Options{Width: 80}},
		{"pair.md", func() *run { return pair(1, 100) }, "md", page.Options{}},
		{"hostile.md", hostile, "md", page.Options{}},
		{"engines-80.txt", func() *run { return engines(20) }, "text", page.Options{Width: 80}},
		{"pods.txt", func() *run { return pods(1, 100) }, "text", page.Options{Width: 120}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			got := rendered(t, tt.record(), tt.format, tt.o)
			golden(t, tt.file, got)
		})
	}
}

// golden compares a report with the one that is kept.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./internal/instrument/lifecycle -update writes it anew); got:\n%s", path, got)
	}
}

func TestTablesStayWithinTheWidth(t *testing.T) {
	for _, width := range []int{80, 100, 120} {
		for name, r := range map[string]*run{"six": six(), "pair": pair(1), "guest": guest(), "lanes": pair(1, 100), "engines": engines(1, 100)} {
			text := rendered(t, r, "text", page.Options{Width: width})
			for line := range strings.Lines(text) {
				if n := term.Width(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s at %d: %d columns: %s", name, width, n, line)
				}
			}
		}
	}
}

func TestEveryPartOfASplitTableBeginsWithTheBaseline(t *testing.T) {
	parts := 0
	for line := range strings.Lines(rendered(t, six(), "text", page.Options{Width: 80})) {
		if strings.HasPrefix(line, "  operation ") {
			parts++
			if names := strings.Fields(line); names[1] != "runtime-1" {
				t.Errorf("no baseline in %q", line)
			}
		}
	}
	if parts < 4 {
		t.Errorf("%d parts; the table of six targets does not fit in 80 columns", parts)
	}
}

func TestTheSameRecordGivesTheSameReport(t *testing.T) {
	for _, format := range forms {
		first := rendered(t, hostile(), format, page.Options{Width: 100, Verbose: true})
		for range 5 {
			if rendered(t, hostile(), format, page.Options{Width: 100, Verbose: true}) != first {
				t.Fatalf("%s differs from one time to the next", format)
			}
		}
	}
}

func TestNoFormatPassesOnWhatATerminalObeys(t *testing.T) {
	for _, format := range forms {
		for _, verbose := range []bool{false, true} {
			out := rendered(t, hostile(), format, page.Options{Width: 80, Verbose: verbose})
			for _, r := range out {
				if r != '\n' && !unicode.IsGraphic(r) {
					t.Errorf("%s: %U is passed on", format, r)
				}
			}
		}
	}
}

func TestMarkdownShowsTextOfOthersAndDoesNotObeyIt(t *testing.T) {
	out := rendered(t, hostile(), "md", page.Options{Verbose: true})
	for _, bad := range []string{"<b>", "`x`", "[link]", "\n# heading", "cmd|"} {
		if strings.Contains(out, bad) {
			t.Errorf("%q stands in it as it came", bad)
		}
	}
	columns := 0
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		n := strings.Count(line, "|") - strings.Count(line, `\|`)
		if columns != 0 && n != columns {
			t.Errorf("a row of %d bars in a table of %d: %s", n, columns, line)
		}
		columns = n
	}
}

// The client tables on x86 of the iSulad performance report, 2020.
var clientOnX86 = []struct {
	op     subject.Op
	lanes  int
	millis [3]int64 // Docker, Podman, iSula
	row    string
}{
	{subject.Create, 1, [3]int64{287, 180, 131}, "| create | 287 | 180 | 131 | -54.36% | -27.22% |"},
	{subject.Start, 1, [3]int64{675, 916, 315}, "| start | 675 | 916 | 315 | -53.33% | -65.61% |"},
	{subject.Stop, 1, [3]int64{349, 513, 274}, "| stop | 349 | 513 | 274 | -21.49% | -46.59% |"},
	{subject.Remove, 1, [3]int64{72, 187, 60}, "| rm | 72 | 187 | 60 | -16.67% | -67.91% |"},
	{subject.Run, 1, [3]int64{866, 454, 359}, "| run | 866 | 454 | 359 | -58.55% | -20.93% |"},
	{subject.Create, 100, [3]int64{4995, 3993, 1911}, "| 100 * create | 4995 | 3993 | 1911 | -61.74% | -52.14% |"},
	{subject.Start, 100, [3]int64{10126, 5537, 3861}, "| 100 * start | 10126 | 5537 | 3861 | -61.87% | -30.27% |"},
	{subject.Stop, 100, [3]int64{8066, 11100, 4268}, "| 100 * stop | 8066 | 11100 | 4268 | -47.09% | -61.55% |"},
	{subject.Remove, 100, [3]int64{3220, 4319, 1967}, "| 100 * rm | 3220 | 4319 | 1967 | -38.91% | -54.46% |"},
	{subject.Run, 100, [3]int64{9822, 5979, 4392}, "| 100 * run | 9822 | 5979 | 4392 | -55.28% | -26.54% |"},
}

func TestTheISuladFormGivesThePublishedTable(t *testing.T) {
	r := newRun([]int{1, 100}, subject.ContainerOps...)
	names := []string{"Docker", "Podman", "iSula"}
	for _, name := range names {
		r.runtime(name, "")
	}
	for _, p := range clientOnX86 {
		for i, name := range names {
			r.times(name, p.op, p.lanes, p.millis[i]*1000, 1000)
		}
	}
	out := rendered(t, r, "md", page.Options{Subject: "iSula"})
	if want := "| operation (ms) | Docker (avg) | Podman (avg) | iSula (avg) | VS Docker | VS Podman |"; strings.Count(out, want) != 2 {
		t.Errorf("not twice in it: %s", want)
	}
	for _, p := range clientOnX86 {
		if !strings.Contains(out, p.row) {
			t.Errorf("not in it: %s", p.row)
		}
	}
}

func TestTheISuladFormTakesItsPercentagesFromMeansThatAreNotRounded(t *testing.T) {
	r := newRun([]int{1}, subject.Create)
	r.runtime("runc", "")
	r.runtime("crun", "")
	r.times("runc", subject.Create, 1, 20_400, 10) // printed as 20
	r.times("crun", subject.Create, 1, 20_496, 10) // printed as 20, too
	if out := rendered(t, r, "md", page.Options{}); !strings.Contains(out, "| create | 20 | 20 | +0.47% |") {
		t.Errorf("no such row in:\n%s", out)
	}
}

func TestFailuresAreCountedInEveryText(t *testing.T) {
	for _, format := range []string{"text", "md"} {
		if out := rendered(t, pair(1), format, page.Options{}); !strings.Contains(out, "failed 0/130") {
			t.Errorf("%s: nothing failed, and it does not say so", format)
		}
		out := rendered(t, failing(), format, page.Options{})
		for _, want := range []string{"failed 13/130", "3/10 failed, ", "10/10 failed"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in it", format, want)
			}
		}
	}
}

func TestWhatWasTimedIsSaidOnce(t *testing.T) {
	r := newRun([]int{1}, subject.Start, subject.Run, subject.Stop)
	r.host()
	again := *r.host()
	r.rec.Targets[1].Name = "again"
	r.times("host", subject.Run, 1, 500, 1)
	out := rendered(t, r, "text", page.Options{})
	for _, want := range []string{"  start, run\n", "host, again  " + again.Operations["run"].Command + "\n"} {
		if strings.Count(out, want) != 1 {
			t.Errorf("%q is not once in:\n%s", want, out)
		}
	}
}

func TestLanesThatWereNotReleasedAreNamed(t *testing.T) {
	r := pair(10)
	r.rec.Batches[len(r.rec.Batches)-1].Lost = 3
	if out, want := rendered(t, r, "text", page.Options{}), "crun run: 3 lanes not released"; !strings.Contains(out, want) {
		t.Errorf("%q is not in:\n%s", want, out)
	}
}

var errFull = errors.New("no space left")

type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestAWriteThatFailsIsNotLost(t *testing.T) {
	rec, l := pair(1).judged(t)
	for _, format := range forms {
		for _, left := range []int{0, 300, 1000} {
			if err := (instrument.List{lifecycle.Instrument}).Report(&full{left}, format, []instrument.Judged{{Record: rec, Judgement: l}}, page.Options{Width: 80}); !errors.Is(err, errFull) {
				t.Errorf("%s after %d bytes: got %v", format, left, err)
			}
		}
	}
}

func TestAFormatThatThereIsNotIsRefused(t *testing.T) {
	rec, l := pair(1).judged(t)
	for _, format := range []string{"html", "chrome", ""} {
		var out bytes.Buffer
		err := (instrument.List{lifecycle.Instrument}).Report(&out, format, []instrument.Judged{{Record: rec, Judgement: l}}, page.Options{})
		if err == nil || !strings.Contains(err.Error(), "text, json, md, csv") || out.Len() > 0 {
			t.Errorf("%q: got %v and %q", format, err, out.String())
		}
	}
}

func TestAnyNumberThatIsNoneIsShownAsNone(t *testing.T) {
	rec, l := engines(1, 100).judged(t)
	nan := math.NaN()
	for i := range l.Tables {
		for j := range l.Tables[i].Rows {
			for k := range l.Tables[i].Rows[j].Cells {
				c := &l.Tables[i].Rows[j].Cells[k]
				c.Time.Estimate.Value, c.Time.Estimate.Hi, c.Trimmed.Estimate.Value = nan, math.Inf(1), nan
				c.Time.Rounds[0].Value = nan
				c.Time.Versus = &figure.Versus{Delta: nan, P: nan, Different: true}
				for n := range c.Lanes {
					c.Lanes[n].Estimate.Value = nan
				}
				for r := range c.Roles {
					for n := range c.Roles[r].Used {
						c.Roles[r].Used[n].Estimate.Value = math.Inf(1)
					}
				}
			}
		}
	}
	for _, format := range forms {
		var out bytes.Buffer
		if err := (instrument.List{lifecycle.Instrument}).Report(&out, format, []instrument.Judged{{Record: rec, Judgement: l}}, page.Options{Width: 100, Verbose: true}); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if s := out.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
			t.Errorf("%s holds what is no number:\n%s", format, s)
		}
		if format == "json" && !json.Valid(out.Bytes()) {
			t.Error("no JSON")
		}
	}
}

// document is what a program reads.
type document struct {
	Version  string           `json:"tare_version"`
	RunID    string           `json:"run_id"`
	Targets  []record.Target  `json:"targets"`
	Figures  []read           `json:"figures"`
	Findings []record.Finding `json:"findings"`
}

type read struct {
	Quantity string            `json:"quantity"`
	Unit     string            `json:"unit"`
	Labels   map[string]string `json:"labels"`
	Rounds   []figure.Round    `json:"rounds"`
	Estimate *figure.Estimate  `json:"estimate"`
	Failed   int               `json:"failed"`
	Total    int               `json:"total"`
	Versus   *figure.Versus    `json:"versus"`
}

func decoded(t *testing.T, text string) (d document) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestJSONKeepsTextOfOthersExactly(t *testing.T) {
	d := decoded(t, rendered(t, hostile(), "json", page.Options{}))
	if d.Version != hostileVersion || d.Targets[1].Name != hostileName {
		t.Errorf("got %q and %q", d.Version, d.Targets[1].Name)
	}
}

func TestEveryFigureOfAnOperationCanBeRead(t *testing.T) {
	d := decoded(t, rendered(t, engines(1, 20), "json", page.Options{}))
	want := map[string]string{
		"latency": "ns", "makespan": "ns", "trimmed-mean": "ns", "time-to": "ns", "lane-latency": "ns", "release-skew": "ns",
		"parallelism": "ratio", "own-cpu-share": "ratio", "user-cpu": "ns", "system-cpu": "ns", "max-rss": "bytes",
		"role-processes": "count", "role-cpu": "ns", "role-memory": "bytes", "role-memory-growth": "bytes", "role-memory-each": "bytes",
	}
	seen := map[string]string{}
	for _, f := range d.Figures {
		seen[f.Quantity] = f.Unit
		if f.Labels["target"] == "" || f.Labels["op"] == "" || f.Labels["lanes"] == "" {
			t.Errorf("%s is told apart by %v only", f.Quantity, f.Labels)
		}
		if f.Quantity == "latency" && f.Total > 0 && (len(f.Rounds) != f.Estimate.N || f.Estimate.Lo > f.Estimate.Value || f.Estimate.Hi < f.Estimate.Value) {
			t.Errorf("%v: %+v of %d rounds", f.Labels, f.Estimate, len(f.Rounds))
		}
	}
	if !maps.Equal(seen, want) {
		t.Errorf("got %v\nwant %v", seen, want)
	}
}

func TestCSVHasARowForEachFigureAndNoFormula(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(rendered(t, hostile(), "csv", page.Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	_, l := hostile().judged(t)
	if len(rows)-1 != len(l.Figures()) {
		t.Errorf("%d rows of %d figures", len(rows)-1, len(l.Figures()))
	}
	for _, row := range rows[1:] {
		for i, cell := range row {
			if cell != "" && strings.ContainsAny(cell[:1], "=+@") {
				t.Errorf("%s holds a formula: %q", rows[0][i], cell)
			}
		}
	}
}
