package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/published"
	"github.com/tare-bench/tare/record"
)

var update = flag.Bool("update", false, "write the golden files anew")

func rendered(t *testing.T, r *run, format Format, o Options) string {
	t.Helper()
	rec, l := r.judged(t)
	var out bytes.Buffer
	if err := Lifecycle(&out, format, rec, l, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestReportsAreAsTheGoldenFilesHaveThem(t *testing.T) {
	tests := []struct {
		file   string
		record func() *run
		format Format
		o      Options
	}{
		{"pair.txt", func() *run { return pair(1) }, Text, Options{Width: 100}},
		{"pair-lanes.txt", func() *run { return pair(1, 100) }, Text, Options{Width: 120}},
		{"pair-subject.txt", func() *run { return pair(1) }, Text, Options{Width: 80, Subject: "crun"}},
		{"pair-verbose.txt", func() *run { return pair(1) }, Text, Options{Width: 100, Verbose: true}},
		{"pair-colour.txt", failing, Text, Options{Width: 100, Colour: true}},
		{"six-80.txt", six, Text, Options{Width: 80}},
		{"six-120.txt", six, Text, Options{Width: 120}},
		{"failing.txt", failing, Text, Options{Width: 100}},
		{"guest.txt", guest, Text, Options{Width: 100}},
		{"alone.txt", alone, Text, Options{Width: 80}},
		{"hostile.txt", hostile, Text, Options{Width: 120}},
		{"empty.txt", func() *run { return newRun([]int{1}, subject.ContainerOps...) }, Text, Options{Width: 80}},
		{"pair.md", func() *run { return pair(1, 100) }, Markdown, Options{}},
		{"guest.md", guest, Markdown, Options{}},
		{"failing.md", failing, Markdown, Options{}},
		{"hostile.md", hostile, Markdown, Options{}},
		{"pair.csv", func() *run { return pair(1, 100) }, CSV, Options{}},
		{"failing.csv", failing, CSV, Options{}},
		{"hostile.csv", hostile, CSV, Options{}},
		{"engines.txt", func() *run { return engines(1, 20) }, Text, Options{Width: 120}},
		{"engines-80.txt", func() *run { return engines(20) }, Text, Options{Width: 80}},
		{"engines.md", func() *run { return engines(20) }, Markdown, Options{}},
		{"engines.csv", func() *run { return engines(1, 20) }, CSV, Options{}},
		{"engines.json", func() *run { return engines(20) }, JSON, Options{}},
		{"pods.txt", func() *run { return pods(1, 100) }, Text, Options{Width: 120}},
		{"pods.md", func() *run { return pods(100) }, Markdown, Options{}},
		{"pods.csv", func() *run { return pods(1) }, CSV, Options{}},
		{"guest.json", guest, JSON, Options{}},
		{"hostile.json", hostile, JSON, Options{}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			got := rendered(t, tt.record(), tt.format, tt.o)
			path := filepath.Join("testdata", tt.file)
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
				t.Errorf("%s differs (go test ./report -update writes it anew); got:\n%s", path, got)
			}
		})
	}
}

func TestTablesStayWithinTheWidth(t *testing.T) {
	for _, width := range []int{80, 100, 120} {
		for name, r := range map[string]*run{"six": six(), "pair": pair(1), "guest": guest(), "lanes": pair(1, 100), "engines": engines(1, 100)} {
			text := rendered(t, r, Text, Options{Width: width})
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
	for line := range strings.Lines(rendered(t, six(), Text, Options{Width: 80})) {
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
	for _, format := range formats {
		first := rendered(t, hostile(), format, Options{Width: 100, Verbose: true})
		for range 5 {
			if rendered(t, hostile(), format, Options{Width: 100, Verbose: true}) != first {
				t.Fatalf("%s differs from one time to the next", format)
			}
		}
	}
}

func TestNoFormatPassesOnWhatATerminalObeys(t *testing.T) {
	for _, format := range formats {
		for _, verbose := range []bool{false, true} {
			out := rendered(t, hostile(), format, Options{Width: 80, Verbose: verbose})
			for _, r := range out {
				if r != '\n' && !unicode.IsGraphic(r) {
					t.Errorf("%s: %U is passed on", format, r)
				}
			}
		}
	}
}

func TestMarkdownShowsTextOfOthersAndDoesNotObeyIt(t *testing.T) {
	out := rendered(t, hostile(), Markdown, Options{Verbose: true})
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

func TestMarkdownEscapes(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a bar", "a|b", `a\|b`},
		{"a bar after a backslash", `a\|b`, `a\\\|b`},
		{"a tag", "<img>", "&lt;img&gt;"},
		{"a backtick", "`x`", "\\`x\\`"},
		{"a newline, as term.Clean writes it", "a\nb", `a\\nb`},
		{"an image", "![x](y)", `!\[x\](y)`},
		{"emphasis", "*a* _b_ ~c~", `\*a\* \_b\_ \~c\~`},
		{"but not a product", "100 * create", "100 * create"},
		{"nor the sign of no difference", "~ (p=0.481)", "~ (p=0.481)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := escaped(tt.text); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestCSVHoldsNoFormula(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(rendered(t, hostile(), CSV, Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		if name := row[2]; strings.ContainsAny(name[:1], "=+-@") {
			t.Errorf("a formula: %q", name)
		}
	}
	for text, want := range map[string]string{"+1": "'+1", "-x": "'-x", "@a": "'@a", "=a": "'=a", "runc": "runc", "": "", "\t=a": `\t=a`} {
		if got := harmless(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestCSVNumbersBelowZeroStayNumbers(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(rendered(t, pair(1), CSV, Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		if row[1] == "create" && row[2] == "crun" {
			if row[10] != "-50.0000" {
				t.Errorf("delta is %q, want -50.0000", row[10])
			}
			return
		}
	}
	t.Error("no row of crun create")
}

func TestJSONKeepsTextOfOthersExactly(t *testing.T) {
	var d struct {
		Version   string `json:"tare_version"`
		Lifecycle struct {
			Targets []record.Target `json:"targets"`
		} `json:"lifecycle"`
	}
	if err := json.Unmarshal([]byte(rendered(t, hostile(), JSON, Options{})), &d); err != nil {
		t.Fatal(err)
	}
	if d.Version != hostileVersion || d.Lifecycle.Targets[1].Name != hostileName {
		t.Errorf("got %q and %q", d.Version, d.Lifecycle.Targets[1].Name)
	}
}

func TestJSONIsTheJudgement(t *testing.T) {
	rec, l := engines(1, 100).judged(t)
	l.Findings = []record.Finding{} // as JSON has it when there are none
	var out bytes.Buffer
	if err := Lifecycle(&out, JSON, rec, l, Options{}); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Lifecycle judge.Lifecycle `json:"lifecycle"`
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(d.Lifecycle)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("read back:\n%s\nwant:\n%s", got, want)
	}
}

func TestWhatIsNoNumberIsShownAsNone(t *testing.T) {
	rec, l := engines(1, 100).judged(t)
	nan := math.NaN()
	for i := range l.Tables {
		for j := range l.Tables[i].Rows {
			for k := range l.Tables[i].Rows[j].Cells {
				c := &l.Tables[i].Rows[j].Cells[k]
				c.Summary.Median, c.Summary.Hi, c.Trimmed, c.UserCPU = nan, math.Inf(1), &nan, nan
				c.Versus = &judge.Versus{Delta: nan, P: nan, Different: true}
				for r := range c.Roles {
					c.Roles[r].CPU, c.Roles[r].Growth, c.Roles[r].Each, c.Roles[r].Before = &nan, math.Inf(1), nan, nan
				}
				if c.Batch != nil {
					c.Batch.Parallelism, c.Batch.OwnShare, c.Batch.P99 = nan, math.Inf(-1), nan
				}
			}
		}
	}
	for _, format := range formats {
		var out bytes.Buffer
		if err := Lifecycle(&out, format, rec, l, Options{Width: 100, Verbose: true}); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if s := out.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
			t.Errorf("%s holds what is no number:\n%s", format, s)
		}
		if format == JSON && !json.Valid(out.Bytes()) {
			t.Error("no JSON")
		}
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
	out := rendered(t, r, Markdown, Options{Subject: "iSula"})
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
	if out := rendered(t, r, Markdown, Options{}); !strings.Contains(out, "| create | 20 | 20 | +0.47% |") {
		t.Errorf("no such row in:\n%s", out)
	}
}

func TestFailuresAreCountedInEveryText(t *testing.T) {
	for _, format := range []Format{Text, Markdown} {
		if out := rendered(t, pair(1), format, Options{}); !strings.Contains(out, "failed 0/130") {
			t.Errorf("%s: nothing failed, and it does not say so", format)
		}
		out := rendered(t, failing(), format, Options{})
		for _, want := range []string{"failed 13/130", "3/10 failed, ", "10/10 failed"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in it", format, want)
			}
		}
	}
}

func TestDurationsHaveThreeDigits(t *testing.T) {
	for ns, want := range map[float64]string{
		0: "0 s", 8.5: "8.50 ns", 842: "842 ns", 999.4: "999 ns", 999.6: "1.00 µs", 842e3: "842 µs", 999_600: "1.00 ms",
		24.62e6: "24.6 ms", 9.994e6: "9.99 ms", 9.996e6: "10.0 ms", 99.96e6: "100 ms", 1.934e9: "1.93 s", 1234.5e9: "1234 s",
		-24.62e6: "-24.6 ms", math.Inf(1): "?",
	} {
		if got := duration(ns); got != want {
			t.Errorf("%v: got %s, want %s", ns, got, want)
		}
	}
	if got := duration(math.NaN()); got != "?" {
		t.Errorf("NaN: got %s", got)
	}
}

func TestMillisecondsAreWholeFromTenOn(t *testing.T) {
	for ns, want := range map[float64]string{
		287.4e6: "287", 10e6: "10", 9.96e6: "10", 9.94e6: "9.9", 1e6: "1.0", 0.996e6: "1.0", 0.842e6: "0.84", 12e3: "0.01",
	} {
		if got := milliseconds(&ns); got != want {
			t.Errorf("%v: got %s, want %s", ns, got, want)
		}
	}
	if got := milliseconds(nil); got != none {
		t.Errorf("no mean: got %s", got)
	}
}

func TestAChangeIsShownOnlyWhereThereIsOne(t *testing.T) {
	tests := []struct {
		name string
		v    judge.Versus
		want string
	}{
		{"none", judge.Versus{Delta: 0.3, P: 0.481}, "~ (p=0.481)"},
		{"slower", judge.Versus{Delta: 0.123, P: 0.001, Different: true}, "+12.3 % (p=0.001)"},
		{"faster", judge.Versus{Delta: -0.5, P: 0.00001, Different: true}, "-50.0 % (p<0.001)"},
		{"small", judge.Versus{Delta: 0.0004, P: 0.02, Different: true}, "+0.04 % (p=0.020)"},
		{"manifold", judge.Versus{Delta: 41.234, P: 0.02, Different: true}, "+4123 % (p=0.020)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := change(&tt.v).joined(0); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestParseFormatNamesTheFormats(t *testing.T) {
	for _, f := range slices.Concat(formats, traces) {
		if got, err := ParseFormat(string(f)); err != nil || got != f {
			t.Errorf("%s: got %s, %v", f, got, err)
		}
		if err := f.Of("startup"); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	if _, err := ParseFormat("html"); err == nil || !strings.Contains(err.Error(), "text, json, md, csv") {
		t.Errorf("got %v", err)
	}
	if err := Lifecycle(&bytes.Buffer{}, "html", &record.Record{}, &judge.Lifecycle{}, Options{}); err == nil {
		t.Error("an unknown format is written")
	}
}

func TestATraceOfWhatIsNoStartIsRefused(t *testing.T) {
	var out bytes.Buffer
	for experiment, write := range map[string]func(Format) error{
		"lifecycle":         func(f Format) error { return Lifecycle(&out, f, &record.Record{}, &judge.Lifecycle{}, Options{}) },
		"overhead":          func(f Format) error { return Overhead(&out, f, &record.Record{}, &judge.Overhead{}, Options{}) },
		"storage":           func(f Format) error { return Storage(&out, f, &record.Record{}, &judge.Storage{}, Options{}) },
		"published figures": func(f Format) error { return Against(&out, f, nil, &published.Report{}, Options{}) },
	} {
		for _, f := range traces {
			want := "the formats of " + experiment + " are text, json, md, csv"
			if err := write(f); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s as %s: got %v", experiment, f, err)
			}
			if err := f.Of(experiment); err == nil {
				t.Errorf("%s as %s: it can be known before, and is not", experiment, f)
			}
		}
	}
	if out.Len() > 0 {
		t.Errorf("written all the same: %q", out.String())
	}
}

func TestASubjectThatWasNotWeighedIsAnError(t *testing.T) {
	rec, l := pair(1).judged(t)
	for _, format := range formats {
		if err := Lifecycle(&bytes.Buffer{}, format, rec, l, Options{Subject: "youki"}); err == nil || !strings.Contains(err.Error(), "youki") {
			t.Errorf("%s: got %v", format, err)
		}
	}
}

func TestWhatWasTimedIsSaidOnce(t *testing.T) {
	r := newRun([]int{1}, subject.Start, subject.Run, subject.Stop)
	r.host()
	again := *r.host()
	r.rec.Targets[1].Name = "again"
	r.times("host", subject.Run, 1, 500, 1)
	out := rendered(t, r, Text, Options{})
	for _, want := range []string{"  start, run\n", "host, again  " + again.Operations["run"].Command + "\n"} {
		if strings.Count(out, want) != 1 {
			t.Errorf("%q is not once in:\n%s", want, out)
		}
	}
}

func TestLanesThatWereNotReleasedAreNamed(t *testing.T) {
	r := pair(10)
	r.rec.Batches[len(r.rec.Batches)-1].Lost = 3
	if out, want := rendered(t, r, Text, Options{}), "crun run: 3 lanes not released"; !strings.Contains(out, want) {
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
	for _, format := range formats {
		for _, left := range []int{0, 300, 1000} {
			if err := Lifecycle(&full{left}, format, rec, l, Options{Width: 80}); !errors.Is(err, errFull) {
				t.Errorf("%s after %d bytes: got %v", format, left, err)
			}
		}
	}
}
