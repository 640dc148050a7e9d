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

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/testing/must"
)

// hostile are names that mean something to SVG, XML, Vega, JavaScript, Markdown or a
// terminal.
var hostile = []string{"</svg><script>alert(1)</script>", "\x1b[31m\ufffe\x00", "a&b\"'`", "](x) ![y](javascript:z)", "datum.x'] + alert(1)", "__proto__", strings.Repeat("long ", 60)}

// hostileCharts are one of each kind, all of whose texts are hostile.
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

func TestFiguresAreWellFormedAndHarmlessWhateverIsCalledHow(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	var out bytes.Buffer
	must.OK(t, Write(&out, "md", []*Page{{Sections: []Section{{Title: "pictures", Charts: hostileCharts()}}}}, Options{Figure: func(name string, svg []byte) (string, error) {
		files[name] = svg
		return "figures/" + name + ".svg", nil
	}}))
	if len(files) != 5 || files["svg-script-alert-1-script-5"] == nil || strings.Count(out.String(), `![\](x) !\[y\](javascript:z)](<figures/`) != 5 {
		t.Errorf("%d files:\n%s", len(files), out.String())
	}
	for name, svg := range files {
		if !bytes.Contains(svg, []byte(`fill="white"`)) || !bytes.Contains(svg, []byte("&lt;script&gt;")) {
			t.Errorf("%s has no white ground or no title", name)
		}
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
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

func TestMarkdownWithoutAPlaceForFilesHasNoFigures(t *testing.T) {
	t.Parallel()
	var without, with bytes.Buffer
	section := Section{Title: "pictures", Notes: []string{"a note"}}
	page := []*Page{{Sections: []Section{section}}}
	must.OK(t, Write(&without, "md", page, Options{}))
	page[0].Sections[0].Charts = hostileCharts()
	if err := Write(&with, "md", page, Options{}); err != nil || with.String() != without.String() {
		t.Errorf("%v:\n%s", err, with.String())
	}
	full := errors.New("no space left on device")
	if err := Write(&with, "md", page, Options{Figure: func(string, []byte) (string, error) { return "", full }}); !errors.Is(err, full) {
		t.Errorf("a figure that could not be kept is %v", err)
	}
}
