package page

import (
	"math"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/term"
)

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

func TestABarIsWhereItsTimeIs(t *testing.T) {
	p := &Waterfall{Length: 1000, First: -1}
	for _, tt := range []struct {
		name     string
		from, to int64
		wait     bool
		want     string
	}{
		{"all", 0, 1000, false, "██████████"},
		{"nothing is not invisible", 300, 300, false, "   ▏"},
		{"nothing at the end", 1000, 1000, false, "         ▏"},
		{"an eighth", 500, 512, false, "     ▏"},
		{"half a cell more", 200, 450, false, "  ██▌"},
		{"from the middle of a cell", 250, 500, false, "  ▐██"},
		{"from the end of a cell", 280, 500, false, "  ▕██"},
		{"a wait", 200, 700, true, "  ┄┄┄┄┄"},
		{"a short wait", 200, 201, true, "  ┄"},
		{"a wait at the end", 999, 1000, true, "         ┄"},
	} {
		if got := p.draw(&Bar{From: tt.from, To: tt.to, Wait: tt.wait}, 10); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	p.First = 550
	if got := p.draw(&Bar{From: 0, To: 1000, Marked: true}, 10); got != "█████◆████" {
		t.Errorf("got %q", got)
	}
}

func TestTheScaleHasRoundTimes(t *testing.T) {
	for _, tt := range []struct {
		length int64
		cells  int
		want   string
	}{
		{243000000, 60, "╷0          ╷50 ms       ╷100 ms     ╷150 ms     ╷200 ms"},
		{2776000000, 40, "╷0            ╷1 s           ╷2 s"},
		{800, 22, "╷0            ╷500 ns"},
		{1500, 20, "╷0           ╷1 µs"},
		{130000000000, 30, "╷0          ╷50 s      ╷100 s"},
	} {
		p := &Waterfall{Length: tt.length}
		if got := p.scale(tt.cells); got != tt.want {
			t.Errorf("%d ns in %d: got %q, want %q", tt.length, tt.cells, got, tt.want)
		}
	}
	if got := (&Waterfall{Length: math.MaxInt64}).scale(10); got == "" {
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
		if got := Cut(tt.in, tt.columns); got != tt.want || term.Width(got) > tt.columns {
			t.Errorf("%q in %d: got %q, want %q", tt.in, tt.columns, got, tt.want)
		}
	}
}
