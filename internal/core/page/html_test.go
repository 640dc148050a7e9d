package page

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// sample returns a page with every kind of element. Its texts end with name.
func sample(name string) *Page {
	f := &figure.Figure{Unit: figure.Nanoseconds, Estimate: figure.Estimate{N: 3, Value: 12345678.9, Lo: 1e7, Hi: 2e7, Bounded: true},
		Rounds: []figure.Round{{Round: 0, Value: 1e7}}, Series: &figure.Series{Times: []float64{0, 1}, Values: []float64{1, 2}}}
	t := Names("target" + name)
	t.Row(Cell{Head: "", Label: "runc" + name})
	t.Add("took"+name, []Cell{Median(f)})
	t.AddSeries("course"+name, []Cell{{Figure: f}})
	t.Line(2, "a group"+name, term.Plain)
	s := Section{Title: "everything" + name, Table: t, Block: &Block{Lines: []string{"paste" + name}}, Notes: []string{"note" + name},
		Lists:   []List{{Heading: "list" + name, Items: []Item{{Key: "key" + name, Text: "text" + name}, {Text: "command" + name, Code: true}}}},
		Files:   []File{{Name: "trace.json" + name, Title: "a trace" + name, JSON: func() any { return map[string]string{"name" + name: "value" + name} }}},
		Picture: &Waterfall{Length: 100, First: 50, Bars: []Bar{{Name: "bar" + name, Kind: "kind" + name, To: 60, CPU: 10, Text: "why" + name}, {Name: "wait" + name, From: 10, To: 20, CPU: -1, Wait: true}}}}
	for kind := Intervals; kind <= Lines; kind++ {
		c := &Chart{Name: "chart" + name, Title: "title" + name, Caption: "caption" + name, Kind: kind, Rules: []Rule{{Value: 1e6, Text: "rule" + name}},
			X: Axis{Title: "x" + name, Unit: figure.Nanoseconds}, Y: Axis{Title: "y" + name, Unit: figure.Bytes}}
		for _, panel := range []string{"one" + name, "other" + name} {
			for _, series := range []string{"runc" + name, "crun" + name} {
				d := At(panel, "group"+name, series)
				d.X, d.X2, d.Y, d.Lo, d.Hi, d.Text = 1e6/3, 2e6, 3<<20/7.0, 2<<20, 5<<20, "remark"+name
				c.Data = append(c.Data, d)
			}
		}
		s.Charts = append(s.Charts, c)
	}
	return &Page{Title: "title" + name, Head: []string{"head" + name + " · rest"}, Sections: []Section{s, {Title: "only a title" + name}}}
}

func written(t *testing.T, pages ...*Page) string {
	t.Helper()
	var out strings.Builder
	must.OK(t, Write(&out, "html", pages, Options{}))
	return out.String()
}

// elements parses a page as a browser does and returns its elements in order.
func elements(t *testing.T, text string) (all []*html.Node) {
	t.Helper()
	top := must.Get(html.Parse(strings.NewReader(text)))(t)
	for n := range top.Descendants() {
		if n.Type == html.ElementNode {
			all = append(all, n)
		}
	}
	return all
}

func attribute(n *html.Node, key string) string {
	i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
	if i < 0 {
		return ""
	}
	return n.Attr[i].Val
}

func TestContentSecurityPolicyMatchesTheFile(t *testing.T) {
	t.Parallel()
	policy, hashed := "", 0
	for _, n := range elements(t, written(t, sample(""))) {
		if attribute(n, "http-equiv") == "Content-Security-Policy" {
			policy = attribute(n, "content")
		}
		if attribute(n, "id") == "vega" { // which page.js unpacks
			hashed++
			packed := must.Get(gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(n.FirstChild.Data))))(t)
			check.That(t, strings.Contains(policy, hashOf(string(must.Get(io.ReadAll(packed))(t)))), "the policy lacks the hash of Vega")
		}
		if (n.Data == "script" && attribute(n, "type") == "") || n.Data == "style" {
			hashed++
			check.That(t, strings.Contains(policy, hashOf(n.FirstChild.Data)),
				"the policy does not have the hash of %s %.60q", n.Data, n.FirstChild.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" || a.Key == "srcset" || (a.Key == "href" && !strings.HasPrefix(a.Val, "#")) {
				t.Errorf("%s has %s=%q, which loads a resource or violates the policy", n.Data, a.Key, a.Val)
			}
		}
		check.That(t, !slices.Contains([]string{"link", "iframe", "object", "embed", "img", "form", "base"}, n.Data), "unexpected element %s", n.Data)
	}
	if n := strings.Count(policy, "'sha256-"); n != hashed || !strings.HasPrefix(policy, "default-src 'none'; script-src 'sha256-") || strings.Contains(policy, "unsafe") {
		t.Errorf("%d hashes of %d elements in %s", n, hashed, policy)
	}
}

func TestRecordTextIsEscapedInHTML(t *testing.T) {
	t.Parallel()
	shape := func(name string) (all []string) {
		for _, n := range elements(t, written(t, sample(name))) {
			keys := n.Data
			for _, a := range n.Attr {
				if a.Key != "class" { // long texts have one of their own
					keys += " " + a.Key
				}
			}
			all = append(all, keys)
		}
		return all
	}
	want := shape("")
	for _, name := range []string{
		`</script><script>alert(1)</script>`, `<!--<script>`, `"><img src=x onerror=alert(1)>`, `' onclick='alert(1)`, `]]></style><b>`, "\u2028\x1b[31m\u202e\x00", `{{.}}`, `javascript:alert(1)//`, `</title></textarea><svg/onload=x>`,
	} {
		check.Equal(t, name, shape(name), want)
	}
}

func TestChartTableHasItsData(t *testing.T) {
	t.Parallel()
	page, specs := sample(""), map[string]object{}
	all := elements(t, written(t, page))
	charts := append([]*Chart{page.Sections[0].Picture.chart("")}, page.Sections[0].Charts...)
	for _, n := range all {
		if id := attribute(n, "id"); strings.HasSuffix(id, "-spec") {
			var spec object
			must.OK(t, json.Unmarshal([]byte(n.FirstChild.Data), &spec))
			specs[id] = spec
		}
	}
	figures := slices.DeleteFunc(all, func(n *html.Node) bool { return n.Data != "figure" })
	must.That(t, len(figures) == len(charts) && len(specs) == len(charts),
		"%d figures and %d specifications of %d charts", len(figures), len(specs), len(charts))
	for i, n := range figures {
		c, spec := charts[i], specs[attribute(n, "id")+"-spec"]
		rows := spec["data"].(object)["values"].(list)
		var cells []float64
		for d := range n.Descendants() {
			if v, err := strconv.ParseFloat(attribute(d, "data-v"), 64); err == nil {
				cells = append(cells, v)
			}
		}
		at := 0
		for k := range c.Data {
			d, row := &c.Data[k], rows[k].(object)
			for _, value := range []struct {
				key string
				is  float64
				s   scale
			}{{"x", d.X, c.X.scale(c.along(true))}, {"x2", d.X2, c.X.scale(c.along(true))}, {"y", d.Y, c.Y.scale(c.along(false))}, {"lo", d.Lo, c.Y.scale(c.along(false))}, {"hi", d.Hi, c.Y.scale(c.along(false))}} {
				got, known := row[value.key].(float64)
				check.That(t, known != math.IsNaN(value.is) && (!known || got == value.is/value.s.per),
					"%s: datum %d has %s %v, want %v", c.Title, k, value.key, got, value.is)
				if !known {
					continue
				}
				must.That(t, at != len(cells) && cells[at] == value.is,
					"%s: the table lacks %s %v of datum %d: %v", c.Title, value.key, value.is, k, cells)
				at++
			}
		}
		check.That(t, at == len(cells) && len(rows) == len(c.Data),
			"%s: %d values of %d in the table, %d rows of %d", c.Title, at, len(cells), len(rows), len(c.Data))
	}
}

func TestRowsAreSortedByValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"24.6 ms": "2.46e+07", "~ 1.5 GiB": "1.610612736e+09", "+3 %": "3", "0.98×": "0.98", "≤ 2 s": "2e+09", "-7 %": "-7", None: "", "runc": "", "": ""} {
		check.Equal(t, text, leading(text), want)
	}
	f := &figure.Figure{Unit: figure.Nanoseconds, Estimate: figure.Exactly(1.0 / 3), Versus: &figure.Versus{Shift: figure.Exactly(-0.25)}}
	table := &Table{}
	table.Rows = [][]Cell{{}}
	table.Add("", []Cell{Median(f)})
	table.Add("", []Cell{Change(f)})
	row := newTableHTML(table, "").Rows[0]
	check.That(t, row[0].Value == "0.3333333333333333" && row[1].Value == "-0.25",
		"figure sorted by %s, its change by %s", row[0].Value, row[1].Value)
}

func TestAnchorsAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, n := range elements(t, written(t, sample(""), sample(""), &Page{Title: "report"}, &Page{Title: "報告"})) {
		id := attribute(n, "id")
		if id == "" {
			continue
		}
		check.That(t, !seen[id] && regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`).MatchString(id), "anchor %q is duplicate or invalid", id)
		seen[id] = true
	}
}

func TestCompleteFileIsSmall(t *testing.T) {
	t.Parallel()
	p := sample("")
	for _, c := range p.Sections[0].Charts {
		for len(c.Data) < MostData {
			c.Data = append(c.Data, c.Data[0])
		}
	}
	table := p.Sections[0].Table
	for len(table.Rows) < 5000 {
		table.Rows = append(table.Rows, table.Rows[0])
	}
	n := len(written(t, p))
	check.That(t, n <= 12e6, "%d bytes", n)
	n = len(written(t, &Page{Title: "without charts"}))
	check.That(t, n <= 40e3, "a page without charts has %d bytes: it must not contain Vega", n)
}

func TestVegaIsTheOfficialBuild(t *testing.T) {
	t.Parallel()
	sums := must.Get(assets.ReadFile("assets/vega/SHA256SUMS"))(t)
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		text := asset("vega/" + name)
		got := sha256.Sum256([]byte(text))
		check.That(t, hex.EncodeToString(got[:]) == sum, "%s is not the official build: run scripts/vega", name)
		for _, end := range []string{"</script", "<!--", "*/\n"} {
			check.That(t, name == "vega-interpreter.js" || !strings.Contains(text, end), "%s has %q, which ends its element", name, end)
		}
	}
	for _, c := range sample("").Sections[0].Charts {
		schema := fmt.Sprint(c.vegaLite(map[string]string{})["$schema"])
		check.That(t, strings.HasSuffix(schema, "/vega-lite/v6.json") && strings.Contains(asset("vega/LICENSE"), "Vega-Lite 6."), "the schema is %s", schema)
	}
}
