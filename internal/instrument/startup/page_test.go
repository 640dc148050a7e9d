package startup

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func (s *begun) report(t *testing.T, format string, o page.Options) string {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch document := (export.Document{Record: s.rec, Figures: s.v.Figures()}); format {
	case "csv":
		err = export.CSV(&out, []export.Document{document})
	case "json":
		err = export.JSON(&out, []export.Document{document})
	case "chrome", "otlp":
		err = Instrument.Formats[format].Write(&out, &s.v)
	default:
		shown := s.v.Page(o)
		o.Verbose = true // details of the text form
		err = page.Write(&out, format, []*page.Page{shown}, o)
	}
	must.OK(t, err)
	return out.String()
}

func TestEveryStartFigureIsOnThePage(t *testing.T) {
	j := judgeStarts(t, dockerStart(0, 560), dockerStart(1, 570), dockerStart(2, 580))
	seen := map[string]figure.Unit{}
	for _, f := range j.Figures() {
		seen[f.Quantity] = f.Unit
		check.That(t, f.Labels.Get("target") != "", "%s without a target: %v", f.Quantity, f.Labels)
	}
	want := map[string]figure.Unit{
		"wall-time": "ns", "time-to-first-instruction": "ns", "runtime-calls": "ns", "engine-time": "ns", "cpu-time": "ns",
		"watching-ratio": "ratio", "watching-cpu-share": "ratio",
		"step-time": "ns", "step-cpu-time": "ns", "phase-time": "ns", "phase-cpu-time": "ns", "gap-time": "ns",
	}
	check.Equal(t, "seen", seen, want)
	wall := figure.Find(j.Figures(), "wall-time")
	if wall.Value != 570e6 || len(wall.Rounds) != 3 || wall.Total != 3 {
		t.Errorf("got %+v", wall)
	}
}

// Lines allowed in a Gantt chart. Names may contain only characters without a meaning in
// Mermaid's grammar.
var ganttLine = regexp.MustCompile(`^(gantt|    dateFormat x|    axisFormat (%S\.%L|%s) s|    todayMarker off|    section [a-z ]+` +
	`|    [^:;#%,\n]+ :(crit, )?t\d+, \d+, \d+|    first instruction :milestone, m\d+, \d+, 0ms)$`)

func TestGanttChartIsValidMermaid(t *testing.T) {
	for name, s := range everyStart() {
		charts := strings.Split(s.report(t, "md", page.Options{}), "```mermaid\n")
		if len(charts) < 2 != (name == "failed") {
			t.Errorf("%s: %d charts", name, len(charts)-1)
		}
		for _, chart := range charts[1:] {
			chart, _, _ = strings.Cut(chart, "\n```")
			for line := range strings.SplitSeq(chart, "\n") {
				check.That(t, ganttLine.MatchString(line), "%s: %q", name, line)
			}
		}
	}
}

func TestPublishedTableKeepsItsOrder(t *testing.T) {
	s := kept("published/kata-boot-2018/record.jsonl")
	for i := range s.v.Targets {
		s.v.Targets[i].Phases = s.v.Targets[i].Table // the table is then printed once
	}
	for _, format := range []string{"text", "md"} {
		out := s.report(t, format, page.Options{})
		for _, want := range []string{
			"kata-runtime create 1.70 s → docker 390 ms → kata-runtime state 9.00 ms → docker 12.0 ms → kata-runtime start 13.0 ms → docker 10.0 ms → kata-runtime state 4.00 ms → docker 638 ms",
			"2.14 s, from the first call to the end of the last", "wall 2.78 s − calls 1.73 s = 1.05 s",
		} {
			check.Contains(t, format, out, want)
		}
		if strings.Contains(out, "time by component") {
			t.Errorf("%s: the same table twice", format)
		}
	}
}

func TestUnknownIsADash(t *testing.T) {
	out := fromLogs().report(t, "md", page.Options{})
	for _, want := range []string{
		"| kata | 1 | 1 | 0 | 9.41 s | – | 692 ms | 8.72 s | – | 7.41 s in kata\\_agent |", "| agent answers | phase | 7.42 s | 79 % | – |",
		"+26.087 s, upper bound (no lower bound), 210 pairs", "-0.003 s, at most 1.20 ms less, 1 pair", "CPU unknown", "lines of unknown form: 132; the first: cripod.containerd.log:17",
		"failed 0/2 starts, 1 without an end", "New client → Agent started in the sandbox", "missing: 12 × suppressed (cripod.kata.log:340)",
	} {
		check.Contains(t, "out", out, want)
	}
	if strings.Contains(out, "seed") || strings.Contains(out, "cgroup") {
		t.Errorf("unobserved values:\n%s", out)
	}
}

func TestExecsHaveTheirOwnTable(t *testing.T) {
	s := fromLogs()
	probe := s.v.Targets[0]
	probe.Target, probe.NoEnd, probe.Wall = "containerd ExecSync", 0, around(170e6, 0)
	s.v.Targets = append(s.v.Targets, probe)
	var tables []string
	for table := range strings.SplitSeq(s.report(t, "md", page.Options{}), "\n\n") {
		if strings.HasPrefix(table, "| target | ended |") {
			tables = append(tables, strings.Join(strings.Split(strings.TrimSpace(table), "\n")[2:], "\n"))
		}
	}
	must.That(t, len(tables) == 2 && strings.HasPrefix(tables[0], "| kata | 1 | 1 | 0 | 9.41 s |") && strings.HasPrefix(tables[1], "| containerd ExecSync | 1 | 0 | 0 | 170 ms |"), "%q", tables)
	check.Equal(t, "rows", [2]int{strings.Count(tables[0], "\n"), strings.Count(tables[1], "\n")}, [2]int{})
}

func TestFailureReasonIsPrinted(t *testing.T) {
	for _, format := range []string{"text", "md"} {
		out := nothingStarted().report(t, format, page.Options{})
		for _, want := range []string{"failed 5/5 starts", "5/5 starts failed; the first: runsc exited with 128", "operation not permitted", "cut off"} {
			check.Contains(t, format, out, want)
		}
		if strings.Contains(out, "mermaid") || strings.Contains(out, "█") {
			t.Errorf("%s: unexpected chart:\n%s", format, out)
		}
	}
}

func TestShortProcessesAreFoldedOnlyIfTooMany(t *testing.T) {
	few := pictureOf(watched().v.Targets[0].Drawn, page.Options{})
	check.Equal(t, "folded processes of a small start", few.folded, 0)
	p := pictureOf(crowded().v.Targets[0].Drawn, page.Options{})
	if len(p.Bars) > maxBars+maxWaits+maxLong+1 || p.folded != 202-len(p.Bars)+1 { // 1 for the row of the first instruction
		t.Errorf("%d bars, %d folded", len(p.Bars), p.folded)
	}
	if all := pictureOf(crowded().v.Targets[0].Drawn, page.Options{Verbose: true}); all.folded != 0 || len(all.Bars) != 203 {
		t.Errorf("verbose: %d bars, %d folded", len(all.Bars), all.folded)
	}
	var names []string
	for _, b := range p.Bars {
		names = append(names, b.Name)
	}
	for _, want := range []string{"runc start", "helper-with-a-name-that-goes-on-and-on-and-on-150", "first instruction"} {
		check.That(t, slices.Contains(names, want), "%s was folded: %q", want, names)
	}
}

func TestWaitPrecedesTheNextRow(t *testing.T) {
	p := pictureOf(watched().v.Targets[1].Drawn, page.Options{})
	at := slices.IndexFunc(p.Bars, func(b page.Bar) bool { return b.Wait })
	if at < 0 || p.Bars[at].Name != "· waited: 500 ms timer" || p.Bars[at+1].Name != "crictl create" || p.Bars[at].From != ms(103) {
		t.Errorf("got %+v", p.Bars)
	}
	docker := pictureOf(watched().v.Targets[0].Drawn, page.Options{}).Bars
	at = slices.IndexFunc(docker, func(b page.Bar) bool { return b.Wait })
	if last := docker[len(docker)-1]; docker[at+1].Name != "runc start" || docker[at].Depth != docker[at+1].Depth || !last.Wait || last.Depth != 0 {
		t.Errorf("got %+v", docker)
	}
	if first := slices.IndexFunc(p.Bars, func(b page.Bar) bool { return b.Marked }); first < 0 || p.Bars[first].Name != "sleep" {
		t.Errorf("first instruction marked at %d", first)
	}
}

func TestStartWithoutEndIsDrawnPartly(t *testing.T) {
	s := fromLogs()
	s.v.Targets[0].Drawn.Start.Ended = 0
	if p := pictureOf(s.v.Targets[0].Drawn, page.Options{}); p == nil || p.Length != ms(9412) {
		t.Errorf("got %+v", p)
	}
	check.Contains(t, "report", s.report(t, "text", page.Options{Width: 120}), "start 1 of 2, which has no end: nginx (cripod.kata.log:1)")
	s.v.Targets[0].Drawn = &Drawn{Start: &record.Start{Began: 5}}
	for _, format := range []string{"text", "md", "csv", "json", "chrome", "otlp"} {
		s.report(t, format, page.Options{Width: 80})
	}
}

func TestInvisibleGuestIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kinds []string
		logs  bool
		says  string // "" for no note
	}{
		"without logs":           {[]string{record.KindVMM}, false, "with --log FILE"},
		"logs with the guest":    {[]string{record.KindVMM, record.KindGuest}, true, ""},
		"logs without the guest": {[]string{record.KindVMM}, true, "turn on the runtime's debug log"},
		"no VMM":                 {[]string{record.KindShim}, false, ""},
	} {
		s := watched()
		d := s.v.Targets[0].Drawn
		d.Parts = nil
		for _, kind := range c.kinds {
			d.Parts = append(d.Parts, trace.Part{Kind: kind})
		}
		if s.v.Logs = nil; c.logs {
			s.v.Logs = &record.Logs{}
		}
		notes := strings.Join(drawnStart(&s.v, &s.v.Targets[0], page.Options{}).Notes, "\n")
		if got := strings.Contains(notes, "its guest is not visible"); got != (c.says != "") || !strings.Contains(notes, c.says) {
			t.Errorf("%s: %s", name, notes)
		}
	}
}
