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

// assets are the static parts of an HTML page. Vega is the build of its authors;
// scripts/vega downloads it.
//
//go:embed assets/page.html assets/page.css assets/page.js assets/theme.js assets/svg.js assets/vega
var assets embed.FS

// asset returns the text of an embedded file.
func asset(name string) string {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // all assets are embedded at build time
	}
	return string(text)
}

// layout is the template of all pages. It is parsed on first use.
var layout = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page.html").Funcs(template.FuncMap{
		"c": term.Clean, "dotted": func(s string) []string { return strings.Split(term.Clean(s), " · ") },
	}).Parse(asset("page.html")))
})

// document is a self-contained HTML file. Its policy forbids it to load or execute anything
// else, whatever its texts contain.
type document struct {
	Beside         []Address
	Title          string
	Style          string
	Early, Scripts []string
	Packed         template.HTML // compressed Vega in a block of data; "" without charts
	Parts          []part
}

// part is one page with its sections.
type part struct {
	*Page
	ID, Heading string
	Sections    []block
}

// block is a section with its charts and tables in HTML.
type block struct {
	*Section
	ID     string
	Charts []figureHTML
	Table  *tableHTML
	Files  []fileHTML
}

// figureHTML is a chart with its data and its specification, which the page's script draws.
type figureHTML struct {
	*Chart
	ID   string
	Spec template.HTML // JSON in a block of data
	Data *tableHTML
	Zoom bool
	Same bool // its title equals the section's
}

type fileHTML struct {
	File
	ID   string
	Data template.HTML
}

// writeHTML renders all pages as one file.
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
		return fmt.Errorf("render HTML page: %w", err)
	}
	return out.Flush()
}

// vegaScript is Vega, Vega-Lite and their interpreter as one script.
var vegaScript = sync.OnceValue(func() string {
	return "/*!\n" + asset("vega/LICENSE") + "*/\n" + asset("vega/vega.min.js") + ";\n" + asset("vega/vega-lite.min.js") + ";\n" + asset("vega/vega-interpreter.js")
})

// packed is vegaScript compressed to a third. The script page.js decompresses it.
var packed = sync.OnceValue(func() template.HTML {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is valid
	_, _ = z.Write([]byte(vegaScript()))                    // a bytes.Buffer never fails
	_ = z.Close()
	text := base64.StdEncoding.EncodeToString(out.Bytes())
	return template.HTML(`<script type="text/plain" id="vega">` + text + "</script>") //nolint:gosec // base64
})

// title sets the title of the document to the cover's title, or to the title that all pages
// share. The pages then have their commands as headings.
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

// Policy returns the Content Security Policy. It allows only the scripts and the style of this
// file, and images that it creates itself.
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

// Element returns an element with unescaped text, because the policy has the hash of the raw
// text.
func (d *document) Element(name, text string) template.HTML {
	return template.HTML("<" + name + ">" + text + "</" + name + ">") //nolint:gosec // only embedded assets
}

// Several reports whether there is more than one page. The document then has a title above
// the titles of its pages.
func (d *document) Several() bool { return len(d.Parts) > 1 }

// Class returns the CSS class of a key, which highlights problems.
func (i *Item) Class() string { return classNames[i.Style] }

// Mark returns the CSS class of a section's title.
func (s *Section) Mark() string { return classNames[s.Style] }

// Keyed reports whether the items of a list are below keys.
func (l *List) Keyed() bool { return len(l.Items) > 0 && l.Items[0].Key != "" }

// classNames are the CSS classes of styles.
var classNames = map[term.Style]string{term.Red: "bad", term.Green: "good", term.Yellow: "warn", term.Dim: "dim", term.Bold: "strong"}
