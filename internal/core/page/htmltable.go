package page

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// tableHTML is a table prepared for the HTML template.
type tableHTML struct {
	Caption string
	Columns []columnHTML
	Rows    [][]cellHTML
}

type columnHTML struct{ Title, Class string }

type cellHTML struct {
	Cell
	Class, TailClass string
	Value            string // sort key; "": the text
	Exactly          string // tooltip: the value with its interval and its number of values
	Span             int    // columns, for a cell across the table
	Names            bool   // the cell is the header of its row
	Line             template.HTML
}

// Titled reports whether any column has a title.
func (t *tableHTML) Titled() bool {
	return slices.ContainsFunc(t.Columns, func(c columnHTML) bool { return c.Title != "" })
}

// widestTail is the maximum width at which second parts of cells are aligned. The style sheet
// has a class for each width.
const widestTail = 24

// longText is the length above which a text may wrap in a wide column.
const longText = 24

func newTableHTML(t *Table, caption string) *tableHTML {
	out, tails := &tableHTML{Caption: caption}, t.tails()
	for i, c := range t.Columns {
		class := ""
		if c.Right {
			class = "n"
		}
		if i > 0 && c.Group != 0 && c.Group != t.Columns[i-1].Group {
			class = strings.TrimSpace(class + " group")
		}
		out.Columns = append(out.Columns, columnHTML{c.Title, class})
	}
	for _, r := range t.Rows {
		var row []cellHTML
		for i, c := range r {
			cell := cellHTML{Cell: c, Class: classNames[c.Style]}
			if c.Label == c.Head {
				cell.Label = ""
			}
			if c.across {
				cell.Span = max(len(t.Columns), 1)
				row = append(row, cell)
				break
			}
			if i < len(t.Columns) {
				column := &t.Columns[i]
				cell.Names = i == 0 && !column.Right
				cell.Class = strings.TrimSpace(out.Columns[i].Class + " " + cell.Class)
				cell.of(column)
			}
			if tails[i] > 0 {
				cell.TailClass = "t" + strconv.Itoa(min(tails[i], widestTail))
			}
			if spaces := len(c.Head) - len(strings.TrimLeft(c.Head, " ")); spaces > 0 && i == 0 {
				cell.Class = strings.TrimSpace(cell.Class + " in" + strconv.Itoa(min(spaces, widestTail)))
			}
			if len(c.Head) > longText {
				cell.Class = strings.TrimSpace(cell.Class + " long")
			}
			row = append(row, cell)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// of sets the fields that depend on the cell's figure.
func (c *cellHTML) of(column *Column) {
	f := c.Figure
	switch {
	case c.by != nil:
		c.Value = exact(*c.by)
	case f != nil && f.Estimate.Known():
		c.Value = exact(f.Estimate.Value)
	case column.Right:
		c.Value = leading(c.Head)
	}
	if f == nil {
		return
	}
	if e := f.Estimate; e.Known() && len(f.Rounds) > 0 {
		c.Exactly = Text(e.Value, f.Unit)
		if e.Bounded {
			c.Exactly += " [" + Text(e.Lo, f.Unit) + ", " + Text(e.Hi, f.Unit) + "]"
		}
		c.Exactly += ", " + Amount(e.N, "value")
	}
	if column.Series && f.Series != nil {
		c.Line = line(f.Series.Values)
	}
}

// exact formats a value with all its digits. It returns "" if the value is not finite.
func exact(v float64) string {
	if !stat.Finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// leading returns the number at the start of a text, converted to the base unit.
func leading(text string) string {
	number, rest, _ := strings.Cut(strings.TrimLeft(text, "~=±≤≥<+ "), " ")
	v, err := strconv.ParseFloat(strings.TrimRight(number, "%×"), 64)
	if err != nil {
		return ""
	}
	unit, _, _ := strings.Cut(rest, " ")
	for _, s := range slices.Concat(times, sizes) {
		if s.name == unit {
			v *= s.per
		}
	}
	return exact(v)
}

// Size in pixels and maximum number of points of an inline line chart.
const (
	lineWidth, lineHeight = 160, 22
	linePoints            = 160
)

// line draws a series as a small chart, scaled from its minimum to its maximum.
func line(values []float64) template.HTML {
	points := resampled(values, linePoints)
	lo, hi := Range(points)
	var b strings.Builder
	for i, v := range points {
		if !stat.Finite(v) {
			continue
		}
		y := 0.5
		if hi-lo > flatWithin*max(hi, -lo) {
			y = (v/2 - lo/2) / (hi/2 - lo/2)
		} else if hi == 0 {
			y = 0
		}
		fmt.Fprintf(&b, "%.1f,%.1f ", float64(i)*lineWidth/float64(max(len(points)-1, 1)), 1+(1-y)*(lineHeight-2))
	}
	return template.HTML(fmt.Sprintf(`<svg class="line" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="values over time"><polyline points="%s"/></svg>`, //nolint:gosec // only numbers
		lineWidth, lineHeight, lineWidth, lineHeight, strings.TrimSpace(b.String())))
}

// table returns a chart's data as a table. It has a column for each field that is set.
func (c *Chart) table() *Table {
	t := &Table{Rows: make([][]Cell, len(c.Data))}
	texts := func(title string, of func(*Datum) string) {
		cells := Each(c.Data, func(d *Datum) Cell { return Words(of(d)) })
		if slices.ContainsFunc(cells, func(c Cell) bool { return c.Head != "" }) {
			t.AddText(title, cells)
		}
	}
	values := func(title string, a Axis, of func(*Datum) float64) {
		t.AddUnless(title, Each(c.Data, func(d *Datum) Cell {
			v := of(d)
			if !stat.Finite(v) {
				return Words(None)
			}
			return Cell{Head: Text(v, a.Unit), by: &v}
		}))
	}
	category, of := "of", c.X.Title
	if c.Kind == Intervals || c.Kind == Stacked {
		category = Known(of)
	}
	texts("panel", func(d *Datum) string { return d.Panel })
	texts(term.Clean(category), func(d *Datum) string { return d.Group })
	texts("series", func(d *Datum) string { return d.Series })
	from := c.X.Title
	if c.Kind == Gantt {
		from = "from"
	}
	values(from, c.X, func(d *Datum) float64 { return d.X })
	values("to", c.X, func(d *Datum) float64 { return d.X2 })
	values(c.Y.Title, c.Y, func(d *Datum) float64 { return d.Y })
	values("from", c.Y, func(d *Datum) float64 { return d.Lo })
	values("to", c.Y, func(d *Datum) float64 { return d.Hi })
	texts("what", func(d *Datum) string {
		if d.Round {
			return Dotted("one round", d.Bound)
		}
		return d.Bound
	})
	texts("remarks", func(d *Datum) string { return d.Text })
	return t
}
