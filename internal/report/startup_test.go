package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

func (s *begun) report(t *testing.T, format Format, o Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := Startup(&out, format, s.rec, &s.v, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var formatsOfStartup = slices.Concat(formats, traces)

func TestStartupReportsAreAsTheGoldenFilesHaveThem(t *testing.T) {
	tests := []struct {
		file   string
		of     func() *begun
		format Format
		o      Options
	}{
		{"startup.txt", watched, Text, Options{Width: 120}},
		{"startup-80.txt", watched, Text, Options{Width: 80}},
		{"startup-colour.txt", watched, Text, Options{Width: 120, Colour: true}},
		{"startup-logs.txt", fromLogs, Text, Options{Width: 120}},
		{"startup-logs-80.txt", fromLogs, Text, Options{Width: 80}},
		{"startup-notes.txt", fromNotes, Text, Options{Width: 120}},
		{"startup-failed.txt", nothingStarted, Text, Options{Width: 120, Colour: true}},
		{"startup-crowded.txt", crowded, Text, Options{}},
		{"startup-vile.txt", vileStarts, Text, Options{Width: 120, Verbose: true}},
		{"startup-empty.txt", func() *begun { return newBegun(true) }, Text, Options{Width: 80}},
		{"startup.md", watched, Markdown, Options{}},
		{"startup-logs.md", fromLogs, Markdown, Options{}},
		{"startup-notes.md", fromNotes, Markdown, Options{}},
		{"startup-crowded.md", crowded, Markdown, Options{}},
		{"startup-vile.md", vileStarts, Markdown, Options{Verbose: true}},
		{"startup.csv", watched, CSV, Options{}},
		{"startup-vile.csv", vileStarts, CSV, Options{}},
		{"startup.json", fromNotes, JSON, Options{}},
		{"startup-chrome.json", watched, Chrome, Options{}},
		{"startup-logs-chrome.json", fromLogs, Chrome, Options{}},
		{"startup-otlp.json", watched, OTLP, Options{}},
		{"startup-logs-otlp.json", fromLogs, OTLP, Options{}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			got := tt.of().report(t, tt.format, tt.o)
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

func TestLinesOfStartsStayWithinTheWidth(t *testing.T) {
	for _, width := range []int{80, 100, 120, 200} {
		for name, s := range map[string]*begun{"watched": watched(), "logs": fromLogs(), "notes": fromNotes(), "failed": nothingStarted(), "crowded": crowded()} {
			for line := range strings.Lines(s.report(t, Text, Options{Width: width})) {
				if n := term.Width(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s at %d: %d columns: %s", name, width, n, line)
				}
			}
		}
	}
}

func TestTheSameStartsGiveTheSameReport(t *testing.T) {
	for _, format := range formatsOfStartup {
		first := vileStarts().report(t, format, Options{Width: 100, Verbose: true})
		for range 5 {
			if vileStarts().report(t, format, Options{Width: 100, Verbose: true}) != first {
				t.Fatalf("%s differs from one time to the next", format)
			}
		}
	}
}

func TestNoFormatOfStartsPassesOnWhatATerminalObeys(t *testing.T) {
	logs := vileStarts()
	logs.v.Live = false
	for _, s := range []*begun{vileStarts(), logs} {
		for _, format := range formatsOfStartup {
			for _, o := range []Options{{Width: 80}, {Verbose: true}} {
				for _, r := range s.report(t, format, o) {
					if r != '\n' && !unicode.IsGraphic(r) {
						t.Errorf("%s: %U is passed on", format, r)
					}
				}
			}
		}
	}
}

func TestMarkdownOfStartsShowsTextOfOthersAndDoesNotObeyIt(t *testing.T) {
	out := vileStarts().report(t, Markdown, Options{Verbose: true})
	for _, bad := range []string{"<b>", "<img", "`x`", "[link]", "\n# heading", "cmd|"} {
		if strings.Contains(out, bad) {
			t.Errorf("%q stands in it as it came", bad)
		}
	}
	if n := strings.Count(out, "\n```"); n%2 != 0 || n != 2*strings.Count(out, "\n```mermaid\n") {
		t.Errorf("%d fences", n)
	}
}

// The lines that a Gantt chart may have, with the characters of names that Mermaid's
// grammar gives no meaning to.
var ganttLine = regexp.MustCompile(`^(gantt|    dateFormat x|    axisFormat (%S\.%L|%s) s|    todayMarker off|    section [a-z ]+` +
	`|    [^:;#%,\n]+ :(crit, )?t\d+, \d+, \d+|    first instruction :milestone, m\d+, \d+, 0ms)$`)

func TestAGanttChartIsOnlyWhatMermaidReads(t *testing.T) {
	for name, s := range map[string]*begun{"watched": watched(), "logs": fromLogs(), "notes": fromNotes(), "crowded": crowded(), "vile": vileStarts()} {
		charts := strings.Split(s.report(t, Markdown, Options{}), "```mermaid\n")
		if len(charts) < 2 {
			t.Errorf("%s: no chart", name)
		}
		for _, chart := range charts[1:] {
			chart, _, _ = strings.Cut(chart, "\n```")
			for line := range strings.SplitSeq(chart, "\n") {
				if !ganttLine.MatchString(line) {
					t.Errorf("%s: %q", name, line)
				}
				text, _, _ := strings.Cut(strings.TrimSpace(line), " :")
				if strings.Contains(line, " :") && slices.ContainsFunc(ganttWords, func(word string) bool { return strings.HasPrefix(strings.ToLower(text), word) }) {
					t.Errorf("%s: a task begins with a keyword: %q", name, line)
				}
			}
		}
	}
}

func TestNamesOfTasksAreTamed(t *testing.T) {
	for name, want := range map[string]string{
		"runc create":                     "runc create",
		"section x:crit, 0, 5;":           "· section x crit 0 5",
		"Gantt":                           "· Gantt",
		"TITLE of it":                     "· TITLE of it",
		"2018-08-03":                      "· 2018-08-03",
		"%%{init: {}}%%":                  "init",
		"a #comment":                      "a comment",
		"<b>&amp;</b>":                    "b amp /b",
		"":                                "· ",
		"\x1b[2J\nx":                      "x1b 2J nx",
		"container-shim-runc-v2 (größer)": "container-shim-runc-v2 (größer)",
	} {
		if got := tame(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if n := term.Width(tame(strings.Repeat("long ", 100))); n > longestTask {
		t.Errorf("%d columns", n)
	}
}

func TestCSVOfStartsHoldsNoFormulaAndHasARowForEachStep(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(vileStarts().report(t, CSV, Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		for i, field := range row {
			if _, err := strconv.ParseFloat(field, 64); field != "" && err != nil && strings.Contains("=+-@", field[:1]) {
				t.Errorf("a formula in %s: %q", rows[0][i], field)
			}
		}
	}
	rows, err = csv.NewReader(strings.NewReader(watched().report(t, CSV, Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows[0], startupColumns) || rows[0][5] != "median_ns" {
		t.Errorf("the columns are %q", rows[0])
	}
	count := map[string]int{}
	for _, row := range rows[1:] {
		count[row[0]]++
		if row[0] == "step" && row[1] == "docker/runc" && row[2] == "2" && !slices.Equal(row[3:10], []string{"runc create", "call", "58000000", "56840000", "59160000", "0.238683", "33000000"}) {
			t.Errorf("got %q", row)
		}
	}
	if want := map[string]int{"start": 10, "step": 14, "phase": 8, "gap": 3}; !reflect.DeepEqual(count, want) {
		t.Errorf("got %v, want %v", count, want)
	}
}

func TestJSONOfStartsIsTheJudgement(t *testing.T) {
	for name, s := range map[string]*begun{"watched": watched(), "logs": fromLogs(), "notes": fromNotes(), "vile": vileStarts()} {
		var d struct {
			RunID   string        `json:"run_id"`
			Status  string        `json:"status"`
			Startup judge.Startup `json:"startup"`
		}
		if err := json.Unmarshal([]byte(s.report(t, JSON, Options{})), &d); err != nil {
			t.Fatal(err)
		}
		if d.Status != "done" || d.RunID != s.rec.Header.RunID {
			t.Errorf("%s: got %q, %q", name, d.RunID, d.Status)
		}
		got, err := json.Marshal(d.Startup.Targets)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(s.v.Targets)
		if err != nil {
			t.Fatal(err)
		}
		// A list without elements is none in one and null in the other.
		null := func(text []byte) string { return strings.ReplaceAll(string(text), ":[]", ":null") }
		if null(got) != null(want) {
			t.Errorf("%s: read back:\n%.3000s\nwant:\n%.3000s", name, got, want)
		}
	}
}

func TestWhatIsNoNumberInStartsIsNeverShownAsOne(t *testing.T) {
	s := watched()
	nans(reflect.ValueOf(&s.v.Targets).Elem())
	for _, format := range formatsOfStartup {
		out := s.report(t, format, Options{Width: 100, Verbose: true})
		if strings.Contains(out, "NaN") || strings.Contains(out, "Inf") {
			t.Errorf("%s holds what is no number", format)
		}
		if (format == JSON || format == Chrome || format == OTLP) && !json.Valid([]byte(out)) {
			t.Errorf("%s is no JSON", format)
		}
	}
}

func TestAWriteOfStartsThatFailsIsNotLost(t *testing.T) {
	s := watched()
	for _, format := range formatsOfStartup {
		for _, left := range []int{0, 300, 3000} {
			if err := Startup(&full{left}, format, s.rec, &s.v, Options{Width: 80}); !errors.Is(err, errFull) {
				t.Errorf("%s after %d bytes: got %v", format, left, err)
			}
		}
	}
	if err := Startup(&bytes.Buffer{}, "html", s.rec, &s.v, Options{}); err == nil {
		t.Error("an unknown format is written")
	}
}

func TestThePublishedFormIsFoundInItsOrder(t *testing.T) {
	for _, format := range []Format{Text, Markdown} {
		out := fromNotes().report(t, format, Options{})
		for _, want := range []string{
			"kata-runtime create 1.70 s → docker 390 ms → kata-runtime state 9.00 ms → docker 12.0 ms → kata-runtime start 13.0 ms → docker 10.0 ms → kata-runtime state 4.00 ms → docker 638 ms",
			"2.14 s, from the first call to the end of the last", "wall 2.78 s − calls 1.73 s = 1.05 s",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in:\n%s", format, want, out)
			}
		}
		if strings.Contains(out, "by what was at work") {
			t.Errorf("%s: the same table twice", format)
		}
	}
}

func TestWhatIsNotKnownIsADash(t *testing.T) {
	out := fromLogs().report(t, Markdown, Options{})
	for _, want := range []string{
		"| kata | 1 | 9.41 s | – | 692 ms | 8.72 s | – | 7.41 s in kata\\_agent |", "| agent answers | phase | 7.42 s | 79 % | – |",
		"+26.087 s, not more (no bound from the other side), 210 pairs", "-0.003 s, at most 1.20 ms less, 1 pair", "CPU not known", "lines of no known form: 132; the first: cripod.containerd.log:17",
		"without an end: 1 start", "New client → Agent started in the sandbox", "missing: 12 × suppressed (cripod.kata.log:340)",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "seed") || strings.Contains(out, "cgroup") {
		t.Errorf("what nobody saw:\n%s", out)
	}
}

func TestWhatFailedSaysWhy(t *testing.T) {
	for _, format := range []Format{Text, Markdown} {
		out := nothingStarted().report(t, format, Options{})
		for _, want := range []string{"failed 5/5 starts", "5/5 starts failed; the first: runsc exited with 128", "operation not permitted", "cut off"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in:\n%s", format, want, out)
			}
		}
		if strings.Contains(out, "mermaid") || strings.Contains(out, "█") {
			t.Errorf("%s: something is drawn:\n%s", format, out)
		}
	}
}

func TestShortProcessesAreFoldedOnlyWhereThereAreTooMany(t *testing.T) {
	few := pictureOf(watched().v.Targets[0].Drawn, Options{})
	if few.folded != 0 {
		t.Errorf("%d of few are folded", few.folded)
	}
	p := pictureOf(crowded().v.Targets[0].Drawn, Options{})
	if len(p.bars) > mostBars+mostWaits+mostLong+1 || p.folded != 202-len(p.bars)+1 { // 1: the first instruction's own row
		t.Errorf("%d bars, %d folded", len(p.bars), p.folded)
	}
	if all := pictureOf(crowded().v.Targets[0].Drawn, Options{Verbose: true}); all.folded != 0 || len(all.bars) != 203 {
		t.Errorf("verbose: %d bars, %d folded", len(all.bars), all.folded)
	}
	var names []string
	for _, b := range p.bars {
		names = append(names, b.name)
	}
	for _, want := range []string{"runc start", "helper-with-a-name-that-goes-on-and-on-and-on-150", "first instruction"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is folded: %q", want, names)
		}
	}
}

func TestABarIsWhereItsTimeIs(t *testing.T) {
	p := &picture{length: 1000, first: -1}
	for _, tt := range []struct {
		name     string
		from, to int64
		kind     string
		want     string
	}{
		{"all", 0, 1000, "", "██████████"},
		{"nothing is not invisible", 300, 300, "", "   ▏"},
		{"nothing at the end", 1000, 1000, "", "         ▏"},
		{"an eighth", 500, 512, "", "     ▏"},
		{"half a cell more", 200, 450, "", "  ██▌"},
		{"from the middle of a cell", 250, 500, "", "  ▐██"},
		{"from the end of a cell", 280, 500, "", "  ▕██"},
		{"a wait", 200, 700, barWait, "  ┄┄┄┄┄"},
		{"a short wait", 200, 201, barWait, "  ┄"},
		{"a wait at the end", 999, 1000, barWait, "         ┄"},
	} {
		if got := p.draw(&bar{from: tt.from, to: tt.to, kind: tt.kind}, 10); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	p.first = 550
	if got := p.draw(&bar{from: 0, to: 1000, marked: true}, 10); got != "█████◆████" {
		t.Errorf("got %q", got)
	}
}

func TestTheScaleHasRoundTimes(t *testing.T) {
	for _, tt := range []struct {
		length int64
		cells  int
		want   string
	}{
		{ms(243), 60, "╷0          ╷50 ms       ╷100 ms     ╷150 ms     ╷200 ms"},
		{ms(2776), 40, "╷0            ╷1 s           ╷2 s"},
		{800, 22, "╷0            ╷500 ns"},
		{ms(0.0015), 20, "╷0           ╷1 µs"},
		{ms(130_000), 30, "╷0          ╷50 s      ╷100 s"},
	} {
		p := &picture{length: tt.length}
		if got := p.scale(tt.cells); got != tt.want {
			t.Errorf("%d ns in %d: got %q, want %q", tt.length, tt.cells, got, tt.want)
		}
	}
	if got := (&picture{length: math.MaxInt64}).scale(10); got == "" {
		t.Error("no scale of the longest time")
	}
}

func TestACutNameKeepsBothEnds(t *testing.T) {
	for _, tt := range []struct {
		in      string
		columns int
		want    string
	}{
		{"short", 5, "short"}, {"containerd-shim-runc-v2", 11, "conta…nc-v2"}, {"容器容器容器", 6, "容…器"}, {"a b", 2, "a…"}, {"\x1b[2Jx", 7, `\x1b[2Jx`},
	} {
		if tt.in == "\x1b[2Jx" {
			tt.want = `\x1…2Jx`
		}
		if got := cut(tt.in, tt.columns); got != tt.want || term.Width(got) > tt.columns {
			t.Errorf("%q in %d: got %q, want %q", tt.in, tt.columns, got, tt.want)
		}
	}
}

func TestAWaitStandsBeforeWhatBeginsAfterIt(t *testing.T) {
	p := pictureOf(watched().v.Targets[1].Drawn, Options{})
	at := slices.IndexFunc(p.bars, func(b bar) bool { return b.kind == barWait })
	if at < 0 || p.bars[at].name != "· waited: 500 ms timer" || p.bars[at+1].name != "crictl create" || p.bars[at].from != ms(103) {
		t.Errorf("got %+v", p.bars)
	}
	docker := pictureOf(watched().v.Targets[0].Drawn, Options{}).bars
	at = slices.IndexFunc(docker, func(b bar) bool { return b.kind == barWait })
	if last := docker[len(docker)-1]; docker[at+1].name != "runc start" || docker[at].depth != docker[at+1].depth || last.kind != barWait || last.depth != 0 {
		t.Errorf("got %+v", docker)
	}
	if first := slices.IndexFunc(p.bars, func(b bar) bool { return b.marked }); first < 0 || p.bars[first].name != "sleep" {
		t.Errorf("the first instruction is marked at %d", first)
	}
}

func TestAStartWithoutAnEndIsDrawnAsFarAsItIsKnown(t *testing.T) {
	s := fromLogs()
	s.v.Targets[0].Drawn.Start.Ended = 0
	if p := pictureOf(s.v.Targets[0].Drawn, Options{}); p == nil || p.length != ms(9412) {
		t.Errorf("got %+v", p)
	}
	if out := s.report(t, Text, Options{Width: 120}); !strings.Contains(out, "start 1 of 2, which has no end: nginx (cripod.kata.log:1)") {
		t.Errorf("got:\n%s", out)
	}
	s.v.Targets[0].Drawn = &judge.StartupDrawn{Start: &record.Start{Began: 5}}
	for _, format := range formatsOfStartup {
		s.report(t, format, Options{Width: 80})
	}
}
