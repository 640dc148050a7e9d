package browser

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"image/png"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// looks are the views of a page. axe-core checks colours and widths separately.
var looks = map[int]string{wide: "light", phone: "dark"}

func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p := newTab(t)
			p.in("opens without requests and errors", func() {
				html := s.html(t)
				check.That(p, len(html) < 1<<20, "%d bytes", len(html))
				p.show(s.name, html)
				p.await(drawn)
			})
			p.in("charts are drawn and match their tables", p.picturesAreData)
			p.in("charts can be saved", p.picturesAreSaved)
			p.in("tables are sorted by value", p.tablesAreOrdered)
			for width, theme := range looks {
				p.in(fmt.Sprintf("%s, %d px wide", theme, width), func() {
					p.resize(width)
					p.medium(theme)
					p.run(painted, nil)
					p.isUsable()
				})
			}
			p.in("at 1280 px only tables with a column per job need scrolling", func() {
				p.resize(1280)
				if cut := eval[[]string](p, `() => [...document.querySelectorAll('main section > .scroll')].filter(e => e.checkVisibility() && !e.ariaLabel.startsWith('in short') && e.scrollWidth > e.clientWidth + 1).map(e => e.ariaLabel + ': ' + e.scrollWidth + ' of ' + e.clientWidth)`); len(cut) > 0 {
					p.Error(cut)
				}
			})
			p.in("printed", func() {
				p.medium("print")
				const sheet = 690 // A4 without its margins
				p.resize(sheet)
				p.run(painted, nil)
				if shown := eval[[]string](p, `() => [...document.querySelectorAll('button, input, nav')].filter(e => e.checkVisibility() && !e.closest('th')).map(e => e.outerHTML)`); len(shown) > 0 {
					p.Errorf("unusable controls are printed: %v", shown)
				}
				// Chromium shrinks content that does not fit when printing, to no less
				// than half its size.
				if width := eval[int](p, `() => document.scrollingElement.scrollWidth`); width > 2*sheet {
					p.Errorf("%d px are cut off at %d: %s", width, 2*sheet, p.overflow())
				}
			})
		})
	}
}

// isUsable checks the page as it is shown now.
func (p *tab) isUsable() {
	for _, v := range p.violations() {
		p.Error(v)
	}
	if wide := p.overflow(); wide != "" {
		p.Error(wide)
	}
}

// picturesAreData compares each chart with its data.
func (p *tab) picturesAreData() {
	for _, f := range eval[[]struct {
		ID, Label   string
		Marks       int      // number of drawn marks
		Data, Table int      // number of points in the specification and of rows in the table
		Lost        []string // values in only one of the two
	}](p, must.Read(p, "testdata/pictures.js")) {
		if f.Marks == 0 || f.Label == "" {
			p.Errorf("%s is not drawn: %d marks, called %q", f.ID, f.Marks, f.Label)
		}
		if f.Data == 0 || f.Data != f.Table || len(f.Lost) > 0 {
			p.Errorf("%s: %d points, %d rows of data, without %q", f.ID, f.Data, f.Table, f.Lost)
		}
	}
}

// tablesAreOrdered clicks the header of every column and checks the order of the cells.
func (p *tab) tablesAreOrdered() {
	for _, wrong := range eval[[]string](p, must.Read(p, "testdata/order.js")) {
		p.Error(wrong)
	}
}

// picturesAreSaved clicks the save buttons of the first and last chart of a page, and
// reads the files.
func (p *tab) picturesAreSaved() {
	for _, id := range eval[[]string](p, `() => [...document.querySelectorAll('figure')].map(f => f.id).filter((id, i, all) => i === 0 || i === all.length - 1)`) {
		for of, check := range map[string]func([]byte) error{
			"SVG": func(b []byte) error { return xml.Unmarshal(b, &struct{ XMLName xml.Name }{xml.Name{Local: "svg"}}) },
			"PNG": func(b []byte) error { _, err := png.Decode(bytes.NewReader(b)); return err },
			"Vega-Lite": func(b []byte) error {
				var spec struct{ Data struct{ Values []any } }
				err := json.Unmarshal(b, &spec)
				if err == nil && len(spec.Data.Values) == 0 {
					err = fmt.Errorf("no data: %.200s", b)
				}
				return err
			},
		} {
			eval[any](p, `(id, of) => { [...document.getElementById(id).querySelectorAll('button')].find(b => b.textContent === of).click() }`, id, of)
			if name, b := p.fetched(of + " of " + id); !strings.HasPrefix(name, id+".") || check(b) != nil {
				p.Errorf("%s of %s is %s, %d bytes: %v", of, id, name, len(b), check(b))
			}
		}
	}
}

// A page must be usable without a mouse.
func TestKeyboardReachesEverything(t *testing.T) {
	t.Parallel()
	p := newTab(t)
	p.show("lifecycle", samples[0].html(t))
	p.await(drawn)
	// until presses Tab until the focus is on an element that matches a selector.
	until := func(selector string) {
		t.Helper()
		for range 300 {
			p.press("Tab")
			if eval[bool](p, `s => document.activeElement.matches(s)`, selector) {
				return
			}
		}
		t.Fatalf("Tab does not reach %s", selector)
	}
	p.press("Tab")
	check.Equal(t, "elements reached by Tab", eval[string](p, `() => document.activeElement.getAttribute('href')`), "#report")
	dark := eval[string](p, `() => getComputedStyle(document.body).backgroundColor`)
	until(".theme")
	for range 2 {
		p.press("Enter")
	}
	now := eval[string](p, `() => getComputedStyle(document.body).backgroundColor`)
	check.That(t, now != dark, "the colours are still %s", now)
	p.isUsable()
	until("th button")
	p.press("Enter")
	p.press("Enter")
	check.Equal(t, "aria-sort", eval[string](p, `() => document.activeElement.closest('th').ariaSort`), "descending")
	eval[any](p, `() => document.querySelectorAll('details.more').forEach(d => d.open = true)`)
	until("input[type=search]")
	p.write("crun")
	rows := eval[[]string](p, `() => {
		const tools = document.activeElement.closest('.tools');
		return [...tools.nextElementSibling.querySelectorAll('tbody tr')].filter(r => r.checkVisibility()).map(r => r.textContent);
	}`)
	check.That(t, len(rows) != 0, "the filter removes all rows")
	for _, row := range rows {
		check.Contains(t, "rows after a filter for crun", row, "crun")
	}
}

func TestWaterfallZoomsWithTheMouse(t *testing.T) {
	t.Parallel()
	p := newTab(t)
	for _, s := range samples {
		if s.name == "startup" {
			p.show(s.name, s.html(t))
		}
	}
	p.await(drawn)
	const ticks = `() => document.querySelector('.plot[data-zoom] svg .role-axis-label').textContent`
	before := eval[string](p, ticks)
	eval[any](p, `() => [...document.querySelectorAll('figure button')].find(b => b.textContent === 'Zoom in').click()`)
	p.await(`() => (` + ticks + `)() !== ` + fmt.Sprintf("%q", before))
	at := eval[struct{ X, Y float64 }](p, must.Read(p, "testdata/bar.js"))
	p.do("Input.dispatchMouseEvent", fields{"type": "mouseMoved", "x": at.X, "y": at.Y}, nil)
	p.await(`() => { const tip = document.querySelector('.tip'); return !tip.hidden && tip.textContent !== '' }`)
}
