package page

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/tare-bench/tare/internal/term"
)

// assets are what a page of HTML is made of, beside its figures. Vega is the build of its
// authors; scripts/vega fetches it again.
//
//go:embed assets/page.html assets/page.css assets/page.js assets/theme.js assets/svg.js assets/vega
var assets embed.FS

// asset is one of them, as it stands in the tree.
func asset(name string) string {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it was embedded when tare was built
	}
	return string(text)
}

// layout is what all pages look like. It is parsed when the first one is drawn.
var layout = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page.html").Funcs(template.FuncMap{
		"c": term.Clean, "dotted": func(s string) []string { return strings.Split(term.Clean(s), " · ") },
	}).Parse(asset("page.html")))
})

// document is a file of HTML: everything that it needs is in it, and its policy lets it
// load nothing and execute nothing else, whatever stands in its texts.
type document struct {
	Beside         []Address
	Title          string
	Style          string
	Early, Scripts []string
	Packed         template.HTML // what draws charts, in a block of data; "" where there are none
	Parts          []part
}

// part is one page with its sections.
type part struct {
	*Page
	ID, Heading string
	Sections    []block
}

// block is a section with what its pictures and tables look like in HTML.
type block struct {
	*Section
	ID     string
	Charts []figureHTML
	Table  *tableHTML
	Files  []fileHTML
}

// figureHTML is a chart: its specification, which the page's script draws, and its data.
type figureHTML struct {
	*Chart
	ID   string
	Spec template.HTML // JSON in a block of data
	Data *tableHTML
	Zoom bool
	Same bool // its title is the section's
}

type fileHTML struct {
	File
	ID   string
	Data template.HTML
}

// writeHTML draws all pages as one file.
func writeHTML(w io.Writer, pages []*Page, beside []Address) error {
	d := document{Beside: beside, Style: asset("page.css"), Early: []string{asset("theme.js")}}
	taken, colours, charts := map[string]bool{"report": true}, map[string]string{}, false
	for _, p := range pages {
		one := part{Page: p, Heading: p.heading()}
		one.ID = uniqueID(taken, one.Heading)
		for i := range p.Sections {
			b, err := newBlock(&p.Sections[i], taken, colours)
			if err != nil {
				return err
			}
			charts = charts || len(b.Charts) > 0
			one.Sections = append(one.Sections, b)
		}
		d.Parts = append(d.Parts, one)
	}
	d.title()
	if charts {
		d.Packed = packed()
	}
	d.Scripts = []string{asset("page.js")}
	out := bufio.NewWriter(w)
	if err := layout().Execute(out, &d); err != nil {
		return fmt.Errorf("draw a page of HTML: %w", err)
	}
	return out.Flush()
}

// vegaScript is what draws charts, as one script.
var vegaScript = sync.OnceValue(func() string {
	return "/*!\n" + asset("vega/LICENSE") + "*/\n" + asset("vega/vega.min.js") + ";\n" + asset("vega/vega-lite.min.js") + ";\n" + asset("vega/vega-interpreter.js")
})

// packed is the same as a page brings it, compressed to a third: page.js unpacks it.
var packed = sync.OnceValue(func() template.HTML {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // which there is
	_, _ = z.Write([]byte(vegaScript()))                    // a buffer takes all
	_ = z.Close()
	text := base64.StdEncoding.EncodeToString(out.Bytes())
	return template.HTML(`<script type="text/plain" id="vega">` + text + "</script>") //nolint:gosec // base64
})

// title is that of the only page, or what all have in common; then each is called by its
// command.
func (d *document) title() {
	d.Title = "tare report"
	if len(d.Parts) == 0 {
		return
	}
	first := d.Parts[0].Heading
	if d.Parts[0].Cover {
		d.Title, d.Parts[0].Heading = first, d.Parts[0].Command
		return
	}
	if len(d.Parts) > 1 && (d.Parts[0].Title == "" || slices.ContainsFunc(d.Parts, func(p part) bool { return p.Heading != first })) {
		return
	}
	d.Title = first
	for i := range d.Parts {
		if p := &d.Parts[i]; len(d.Parts) > 1 && p.Command != "" {
			p.Heading = p.Command
		}
	}
}

func newBlock(s *Section, taken map[string]bool, colours map[string]string) (block, error) {
	b := block{Section: s, ID: uniqueID(taken, s.Title)}
	charts := s.Charts
	if s.Picture != nil {
		charts = append([]*Chart{s.Picture.chart(s.Title)}, charts...)
	}
	for _, c := range charts {
		text, err := dataBlock(c.vegaLite(colours))
		if err != nil {
			return b, err
		}
		f := figureHTML{Chart: c, ID: uniqueID(taken, c.Name), Data: newTableHTML(c.table(), c.Title+": data"), Zoom: c.Kind == Gantt, Same: c.Title == s.Title}
		f.Spec = template.HTML(`<script type="application/json" id="` + f.ID + `-spec">` + text + "</script>") //nolint:gosec // JSON without <, > and &
		b.Charts = append(b.Charts, f)
	}
	if s.Table != nil {
		b.Table = newTableHTML(s.Table, s.Title)
	}
	for _, file := range s.Files {
		text, err := dataBlock(file.JSON())
		if err != nil {
			return b, err
		}
		f := fileHTML{File: file, ID: uniqueID(taken, file.Name)}
		f.Data = template.HTML(`<script type="application/json" id="` + f.ID + `">` + text + "</script>") //nolint:gosec // JSON without <, > and &
		b.Files = append(b.Files, f)
	}
	return b, nil
}

// Policy is the Content Security Policy: the scripts and the style of this very file,
// pictures that it makes itself, and nothing from anywhere.
func (d *document) Policy() string {
	scripts := ""
	for _, s := range slices.Concat(d.Early, d.Scripts) {
		scripts += " " + hashOf(s)
	}
	if d.Packed != "" {
		scripts += " " + hashOf(vegaScript())
	}
	return "default-src 'none'; script-src" + scripts + "; style-src " + hashOf(d.Style) + "; img-src data: blob:; base-uri 'none'; form-action 'none'"
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Element is one of ours, as it stands: its hash is that of the very text.
func (d *document) Element(name, text string) template.HTML {
	return template.HTML("<" + name + ">" + text + "</" + name + ">") //nolint:gosec // of assets alone
}

// Several tells whether there is more than one page, whose titles stand below one of all.
func (d *document) Several() bool { return len(d.Parts) > 1 }

// Class is that of a key: what to mistrust stands out.
func (i *Item) Class() string { return className(i.Style) }

// Mark is the class of a section's title.
func (s *Section) Mark() string { return className(s.Style) }

// Keyed tells whether every text of a list is below a key.
func (l *List) Keyed() bool { return len(l.Items) > 0 && l.Items[0].Key != "" }

// className is a style's in the style sheet.
func className(s term.Style) string {
	switch s {
	case term.Red:
		return "bad"
	case term.Green:
		return "good"
	case term.Yellow:
		return "warn"
	case term.Dim:
		return "dim"
	case term.Bold:
		return "strong"
	}
	return ""
}
