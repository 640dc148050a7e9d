package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// hostile are names with a meaning in SVG, XML, Vega, JavaScript, Markdown or a terminal.
var hostile = []string{"</svg><script>alert(1)</script>", "\x1b[31m\ufffe\x00", "a&b\"'`", "](x) ![y](javascript:z)", "datum.x'] + alert(1)", "__proto__", strings.Repeat("long ", 60)}

// hostileCharts returns one chart of each kind; all their texts are hostile.
func hostileCharts() (all []*Chart) {
	for _, kind := range []ChartKind{Intervals, Cumulative, Gantt, Stacked, Lines} {
		c := &Chart{Name: "../" + hostile[0], Title: hostile[0], Caption: hostile[3], Kind: kind, X: Axis{Title: hostile[1], Unit: figure.Nanoseconds}, Y: Axis{Title: hostile[2]},
			Rules: []Rule{{Value: 1, Text: hostile[0], Vertical: kind == Gantt}, {Value: 2, Text: hostile[4], Vertical: kind == Gantt || kind == Lines}}}
		for i, name := range hostile {
			at := At(hostile[i%2], name, hostile[(i+3)%len(hostile)])
			at.X, at.X2, at.Y, at.Text, at.Round = float64(i), float64(i+1), 1/float64(1+i), name, i%3 == 0
			if i%2 == 0 {
				at.Lo, at.Hi = at.Y/2, at.Y*2
			}
			if i == 4 && kind != Gantt {
				at.Y = math.NaN()
			}
			c.Data = append(c.Data, at)
		}
		all = append(all, c)
	}
	return all
}

func TestSVGEscapesHostileNames(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	var out bytes.Buffer
	must.OK(t, Write(&out, "md", []*Page{{Sections: []Section{{Title: "pictures", Charts: hostileCharts()}}}}, Options{Figure: func(name string, svg []byte) (string, error) {
		files[name] = svg
		return "figures/" + name + ".svg", nil
	}}))
	check.That(t, len(files) == 5 && files["svg-script-alert-1-script-5"] != nil &&
		strings.Count(out.String(), `![\](x) !\[y\](javascript:z)](<figures/`) == 5, "%d files:\n%s", len(files), out.String())
	for name, svg := range files {
		check.That(t, bytes.Contains(svg, []byte(`fill="white"`)) && bytes.Contains(svg, []byte("&lt;script&gt;")),
			"%s lacks a white background or a title", name)
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			must.OK(t, err)
			start, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			switch start.Name.Local {
			case "script", "foreignObject", "image", "a", "style":
				t.Errorf("%s has an element %s", name, start.Name.Local)
			}
			for _, a := range start.Attr {
				size, err := strconv.ParseFloat(a.Value, 64)
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" || start.Name.Local == "svg" && (a.Name.Local == "width" || a.Name.Local == "height") && !(err == nil && size > 0 && size < 2500) {
					t.Errorf("%s: <%s %s=%q>", name, start.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
}

func TestMarkdownWithoutFileFolderHasNoImages(t *testing.T) {
	t.Parallel()
	var without, with bytes.Buffer
	section := Section{Title: "pictures", Notes: []string{"a note"}}
	page := []*Page{{Sections: []Section{section}}}
	must.OK(t, Write(&without, "md", page, Options{}))
	page[0].Sections[0].Charts = hostileCharts()
	err := Write(&with, "md", page, Options{})
	check.That(t, err == nil && with.String() == without.String(), "%v:\n%s", err, with.String())
	full := errors.New("no space left on device")
	check.Is(t, Write(&with, "md", page, Options{Figure: func(string, []byte) (string, error) { return "", full }}), full)
}

func TestSparkline(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name   string
		values []float64
		width  int
		want   string
	}{
		{"ascending", []float64{0, 1, 2, 3, 4, 5, 6, 7}, 8, "▁▂▃▄▅▆▇█"},
		{"descending", []float64{7, 0}, 8, "█▁"},
		{"no more characters than values", []float64{1, 2}, 40, "▁█"},
		{"resampled by the mean", []float64{0, 2, 8, 6, 14, 14}, 3, "▁▄█"},
		{"peak is visible", []float64{0, 0, 0, 8, 0, 0}, 3, "▁█▁"},
		{"gap is a space", []float64{0, nan, 4}, 3, "▁ █"},
		{"gap narrower than a character has its neighbour's value", []float64{0, nan, 4, 4}, 2, "▁█"},
		{"all zeros are at the bottom", []float64{0, 0, 0}, 3, "▁▁▁"},
		{"constant values have half the height", []float64{5, 5, 5}, 3, "▄▄▄"},
		{"noise is not stretched", []float64{1000, 1001, 999, 1000}, 4, "▄▄▄▄"},
		{"negative values", []float64{-7, 0}, 2, "▁█"},
		{"no values", nil, 10, ""},
		{"no width", []float64{1, 2}, 0, ""},
		{"only gaps", []float64{nan, math.Inf(1)}, 2, "  "},
		{"largest numbers", []float64{-math.MaxFloat64, math.MaxFloat64}, 2, "▁█"},
	} {
		check.Equal(t, tt.name, sparkline(tt.values, tt.width), tt.want)
	}
}

func TestSparklineWidthEqualsItsLength(t *testing.T) {
	values := make([]float64, 1000)
	for i := range values {
		values[i] = math.Sin(float64(i) / 50)
	}
	for width := range 60 {
		got := sparkline(values, width)
		check.That(t, utf8.RuneCountInString(got) == width && term.Width(got) == width,
			"%d: %q has %d characters in %d columns", width, got, utf8.RuneCountInString(got), term.Width(got))
	}
	check.Equal(t, "characters other than bars", strings.Trim(sparkline(values, 40), string(bars)), "")
}

func TestTaskNamesAreEscaped(t *testing.T) {
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
		check.Equal(t, name, tame(name), want)
	}
	n := term.Width(tame(strings.Repeat("long ", 100)))
	check.That(t, n <= longestTask, "%d columns", n)
}

func TestBarPositionMatchesItsTime(t *testing.T) {
	p := &Waterfall{Length: 1000, First: -1}
	for _, tt := range []struct {
		name     string
		from, to int64
		wait     bool
		want     string
	}{
		{"all", 0, 1000, false, "██████████"},
		{"zero length is visible", 300, 300, false, "   ▏"},
		{"zero length at the end", 1000, 1000, false, "         ▏"},
		{"eighth of a cell", 500, 512, false, "     ▏"},
		{"half a cell at the end", 200, 450, false, "  ██▌"},
		{"begins in the middle of a cell", 250, 500, false, "  ▐██"},
		{"begins at the end of a cell", 280, 500, false, "  ▕██"},
		{"wait", 200, 700, true, "  ┄┄┄┄┄"},
		{"short wait", 200, 201, true, "  ┄"},
		{"wait at the end", 999, 1000, true, "         ┄"},
	} {
		check.Equal(t, tt.name, p.draw(&Bar{From: tt.from, To: tt.to, Wait: tt.wait}, 10), tt.want)
	}
	p.First = 550
	check.Equal(t, "marked bar", p.draw(&Bar{From: 0, To: 1000, Marked: true}, 10), "█████◆████")
}

func TestScaleHasRoundTimes(t *testing.T) {
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
		check.Equal(t, tt.length, p.scale(tt.cells), tt.want)
	}
	got := (&Waterfall{Length: math.MaxInt64}).scale(10)
	check.That(t, got != "", "no scale of the longest time")
}

func TestTruncatedNameKeepsBothEnds(t *testing.T) {
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
		got := Cut(tt.in, tt.columns)
		check.That(t, got == tt.want && term.Width(got) <= tt.columns, "%q in %d: got %q, want %q", tt.in, tt.columns, got, tt.want)
	}
}
