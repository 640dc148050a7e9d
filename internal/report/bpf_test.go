package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/term"
)

func (l *loaded) report(t *testing.T, format Format, o Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := BPF(&out, format, l.rec, &l.v, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestBPFReportsAreAsTheGoldenFilesHaveThem(t *testing.T) {
	made := func(l *loading) func(*testing.T) *loaded { return l.judge }
	tests := []struct {
		file   string
		of     func(*testing.T) *loaded
		format Format
		o      Options
	}{
		{"bpf-load.txt", made(meshLoads(2)), Text, Options{Width: 120}},
		{"bpf-load-80.txt", made(meshLoads(8)), Text, Options{Width: 80}},
		{"bpf-load-verbose.txt", made(meshLoads(8)), Text, Options{Width: 120, Verbose: true}},
		{"bpf-open.txt", made(openLoop()), Text, Options{Width: 120}},
		{"bpf-quota.txt", made(quotaShared()), Text, Options{Width: 120}},
		{"bpf-quota-80.txt", made(quotaShared()), Text, Options{Width: 80, Colour: true}},
		{"bpf-quota-beside.txt", made(quotaBeside()), Text, Options{Width: 120}},
		{"bpf-quota-undecided.txt", made(quotaUndecided()), Text, Options{Width: 120}},
		{"bpf-quota-chosen.txt", made(quotaOfAll()), Text, Options{Width: 120}},
		{"bpf-quota-misbooked.txt", made(quotaMisbooked()), Text, Options{Width: 120}},
		{"bpf-memory.txt", made(memoryGrows()), Text, Options{Width: 120}},
		{"bpf-memory-80.txt", made(memoryStays()), Text, Options{Width: 80}},
		{"bpf-failed.txt", made(loadsFailed()), Text, Options{Width: 80}},
		{"bpf-empty.txt", made(newLoading(plan.DefaultsOfBPF())), Text, Options{Width: 80}},
		{"bpf-vile.txt", vileLoads, Text, Options{Width: 120, Verbose: true}},
		{"bpf-load.md", made(meshLoads(2)), Markdown, Options{}},
		{"bpf-quota.md", made(quotaShared()), Markdown, Options{}},
		{"bpf-memory.md", made(memoryGrows()), Markdown, Options{}},
		{"bpf-vile.md", vileLoads, Markdown, Options{Verbose: true}},
		{"bpf-load.csv", made(meshLoads(2)), CSV, Options{}},
		{"bpf-quota.csv", made(quotaShared()), CSV, Options{}},
		{"bpf-memory.csv", made(memoryGrows()), CSV, Options{}},
		{"bpf-quota.json", made(quotaShared()), JSON, Options{}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			got := tt.of(t).report(t, tt.format, tt.o)
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

func everyLoad() map[string]*loading {
	return map[string]*loading{"loads": meshLoads(8), "open": openLoop(), "shared": quotaShared(), "beside": quotaBeside(), "undecided": quotaUndecided(),
		"misbooked": quotaMisbooked(), "of all": quotaOfAll(), "grows": memoryGrows(), "stays": memoryStays(), "failed": loadsFailed()}
}

func TestTablesOfBPFStayWithinTheWidth(t *testing.T) {
	for _, width := range []int{80, 100, 120, 200} {
		for name, l := range everyLoad() {
			for line := range strings.Lines(l.judge(t).report(t, Text, Options{Width: width})) {
				if n := term.Width(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s at %d: %d columns: %s", name, width, n, line)
				}
			}
		}
	}
}

func TestTheSameLoadsGiveTheSameReport(t *testing.T) {
	for _, format := range formats {
		first := vileLoads(t).report(t, format, Options{Width: 100, Verbose: true})
		for range 5 {
			if vileLoads(t).report(t, format, Options{Width: 100, Verbose: true}) != first {
				t.Fatalf("%s differs from one time to the next", format)
			}
		}
	}
}

func TestNoFormatOfBPFPassesOnWhatATerminalObeys(t *testing.T) {
	for _, format := range formats {
		for _, o := range []Options{{Width: 80}, {Verbose: true}} {
			for _, r := range vileLoads(t).report(t, format, o) {
				if r != '\n' && !unicode.IsGraphic(r) {
					t.Errorf("%s: %U is passed on", format, r)
				}
			}
		}
	}
}

func TestMarkdownOfBPFShowsTextOfOthersAndDoesNotObeyIt(t *testing.T) {
	out := vileLoads(t).report(t, Markdown, Options{Verbose: true})
	for _, bad := range []string{"<b>", "<img", "`x`", "[link]", "\n# heading", "cmd|"} {
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

func TestSharesOfACoreAndOfTheNodeStandSideBySideAndAreTitled(t *testing.T) {
	table := sectionOf(t, meshLoads(8).judge(t).report(t, Markdown, Options{}), "CPU by load")
	for _, want := range []string{
		"| connections | client core % | client node % | eBPF core % | eBPF node % |",
		"| 100 | 98.4 | 12.3 |", "| 3000 | 536 | 67.0 | 76.0 \\[76.0, 76.0\\] | 9.50 \\[9.50, 9.50\\] |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in:\n%s", want, table)
		}
	}
	if out := meshLoads(2).judge(t).report(t, Text, Options{}); !strings.Contains(out, "12.99 % of a core is 1.62 % of the node") {
		t.Errorf("the head does not say what percent are of:\n%s", out)
	}
}

func TestEveryFormOfAQuotaHasTheVerdict(t *testing.T) {
	for word, l := range map[string]*loading{"counts against the limit": quotaShared(), "is not limited": quotaBeside(), "not decided": quotaUndecided()} {
		for _, format := range formats {
			if out := l.judge(t).report(t, format, Options{Width: 200}); !strings.Contains(out, word) {
				t.Errorf("%s: no %q in:\n%s", format, word, out)
			}
		}
	}
}

func TestMemoryIsComparedInWords(t *testing.T) {
	grows := memoryGrows().judge(t).report(t, Text, Options{})
	for _, want := range []string{"101 KiB more with 1000 than with 1: 104 B each", "up to 2.00 KiB more under load", "(1000 in it)"} {
		if !strings.Contains(grows, want) {
			t.Errorf("no %q in:\n%s", want, grows)
		}
	}
	stays := memoryStays().judge(t).report(t, Text, Options{})
	if !strings.Contains(stays, "the same with 1000 as with 1") || strings.Contains(stays, "what differs") || strings.Contains(stays, "under load:") {
		t.Errorf("got:\n%s", stays)
	}
}

func TestCSVOfBPFHoldsNoFormulaAndHasARowForEachProgram(t *testing.T) {
	read := func(l *loaded) [][]string {
		rows, err := csv.NewReader(strings.NewReader(l.report(t, CSV, Options{}))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	rows := read(vileLoads(t))
	for _, row := range rows[1:] {
		for i, field := range row {
			if _, err := strconv.ParseFloat(field, 64); field != "" && err != nil && strings.Contains("=+-@", field[:1]) {
				t.Errorf("a formula in %s: %q", rows[0][i], field)
			}
		}
	}
	count := map[string]int{}
	for _, row := range read(meshLoads(2).judge(t))[1:] {
		count[row[0]]++
	}
	if count["point"] != 4 || count["program"] != 12 {
		t.Errorf("rows: %v", count)
	}
}

func TestJSONOfBPFIsReadAgain(t *testing.T) {
	for name, l := range everyLoad() {
		var d struct {
			Experiment string `json:"experiment"`
			BPF        struct {
				CPUs int               `json:"cpus"`
				Rows []json.RawMessage `json:"rows"`
			} `json:"bpf"`
		}
		v := l.judge(t)
		if err := json.Unmarshal([]byte(v.report(t, JSON, Options{})), &d); err != nil {
			t.Fatal(err)
		}
		if d.Experiment != "bpf" || d.BPF.CPUs != 8 || len(d.BPF.Rows) != len(v.v.Rows) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestBPFHasNoTraces(t *testing.T) {
	l := meshLoads(1).judge(t)
	for _, format := range []Format{Chrome, OTLP, "pdf"} {
		if err := BPF(&bytes.Buffer{}, format, l.rec, &l.v, Options{}); err == nil || format.Of("bpf") == nil {
			t.Errorf("%s is written", format)
		}
	}
	for _, format := range formats {
		if err := format.Of("bpf"); err != nil {
			t.Error(err)
		}
	}
}

func TestMemoryOfAProgramIsNotThatOfAnotherNumberOfServices(t *testing.T) {
	l := memoryGrows()
	for i := range l.rec.Points {
		for j := range l.rec.Points[i].Runs {
			l.rec.Points[i].Runs[j].ID += uint32(100 * (i + 1)) // loaded anew at each point
		}
	}
	table := sectionOf(t, l.judge(t).report(t, Markdown, Options{}), "eBPF by program")
	if strings.Contains(table, "MiB") {
		t.Errorf("got:\n%s", table)
	}
}

func TestAnOpenLoopWithFailuresIsNotCalledFreeOfOmission(t *testing.T) {
	l := openLoop()
	if out := l.judge(t).report(t, Text, Options{Width: 400}); strings.Contains(out, "free of coordinated omission") || !strings.Contains(out, "12 requests failed and are in none of them") {
		t.Errorf("got:\n%s", out)
	}
	l.rec.Points[0].Sent.Errors, l.rec.Points[0].Sent.Unsent = 0, 1
	if out := l.judge(t).report(t, Text, Options{Width: 400}); strings.Contains(out, "free of coordinated omission") || !strings.Contains(out, "1 request had no answer in time or was never sent") {
		t.Errorf("got:\n%s", out)
	}
	l.rec.Points[0].Sent.Unsent = 0
	if out := l.judge(t).report(t, Text, Options{Width: 400}); !strings.Contains(out, "free of coordinated omission") {
		t.Errorf("got:\n%s", out)
	}
}

func TestAPriceTakesThreeRounds(t *testing.T) {
	if out := meshLoads(2).judge(t).report(t, Text, Options{Width: 200}); strings.Contains(out, "0.98×") || !strings.Contains(out, "of fewer than 3 rounds it is noise") {
		t.Errorf("got:\n%s", out)
	}
	if out := meshLoads(3).judge(t).report(t, Text, Options{Width: 200}); !strings.Contains(out, "~ 0.98×") {
		t.Errorf("got:\n%s", out)
	}
}

func TestTimesHaveUnits(t *testing.T) {
	if out := meshLoads(2).judge(t).report(t, Text, Options{Width: 200}); !strings.Contains(out, "20.5 µs") || strings.Contains(out, "ns each") {
		t.Errorf("got:\n%s", out)
	}
}
