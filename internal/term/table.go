package term

import (
	"bufio"
	"io"
	"strings"
)

// Table prints rows in aligned columns. Every text that it is given is
// cleaned, and columns are as wide as their widest cell is on a terminal.
// The zero value is a table without a heading and without colour.
type Table struct {
	Columns []Column // the heading, where there is one, and the alignment
	Indent  int      // spaces before every row
	Colour  bool     // see [Colour]
	// Width is where the last column is broken at spaces and continued below
	// itself, 0 never: a terminal's own wrapping would cross the columns.
	Width int

	lines []line
}

// Column is what all cells below each other have in common.
type Column struct {
	Title string
	Right bool // numbers line up on the right
}

// Cell is one text of a row.
type Cell struct {
	Text  string
	Style Style
}

// line is a row of cells, or one text across all columns.
type line struct {
	cells  []Cell
	across *Cell
	indent int
}

// Add appends a row of plain cells.
func (t *Table) Add(texts ...string) {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	t.AddCells(cells...)
}

// AddCells appends a row. It may have fewer or more cells than other rows.
func (t *Table) AddCells(cells ...Cell) {
	t.lines = append(t.lines, line{cells: cells, indent: t.Indent})
}

// AddLine appends a text of its own, indented by that many spaces, that has no
// part in the columns: the name of a group, or a command to paste, which is
// why it is never broken. An empty text gives an empty line.
func (t *Table) AddLine(indent int, text string, style Style) {
	t.lines = append(t.lines, line{across: &Cell{Text: text, Style: style}, indent: indent})
}

// Write prints the table.
func (t *Table) Write(w io.Writer) error {
	lines := t.cleaned()
	widths := columnWidths(lines)
	out := bufio.NewWriter(w)
	for _, l := range lines {
		if l.across != nil {
			t.writeAcross(out, l)
			continue
		}
		t.writeRow(out, l, widths)
	}
	return out.Flush()
}

// cleaned returns the heading and all lines with their texts cleaned.
func (t *Table) cleaned() []line {
	lines := make([]line, 0, len(t.lines)+1)
	if heading, ok := t.heading(); ok {
		lines = append(lines, heading)
	}
	for _, l := range t.lines {
		if l.across != nil {
			l.across = &Cell{Text: Clean(l.across.Text), Style: l.across.Style}
		}
		cells := make([]Cell, len(l.cells))
		for i, c := range l.cells {
			cells[i] = Cell{Text: Clean(c.Text), Style: c.Style}
		}
		l.cells = cells
		lines = append(lines, l)
	}
	return lines
}

func (t *Table) heading() (line, bool) {
	l := line{cells: make([]Cell, len(t.Columns)), indent: t.Indent}
	titled := false
	for i, c := range t.Columns {
		l.cells[i] = Cell{Text: Clean(c.Title), Style: Bold}
		titled = titled || c.Title != ""
	}
	return l, titled
}

func columnWidths(lines []line) []int {
	var widths []int
	for _, l := range lines {
		for i, c := range l.cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(c.Text))
		}
	}
	return widths
}

// gap separates two columns: two spaces, so that a single one in a cell does
// not look like a border.
const gap = "  "

func (t *Table) writeRow(out *bufio.Writer, l line, widths []int) {
	cells := l.cells
	for len(cells) > 0 && cells[len(cells)-1].Text == "" {
		cells = cells[:len(cells)-1] // no spaces at the end of a line
	}
	out.WriteString(strings.Repeat(" ", l.indent))
	at := l.indent
	for i, c := range cells {
		last := i == len(cells)-1
		if last && !t.right(i) {
			t.writeWrapped(out, c, at)
			break
		}
		pad := strings.Repeat(" ", widths[i]-Width(c.Text))
		text := c.Style.Paint(c.Text, t.Colour)
		switch {
		case t.right(i):
			text = pad + text
		case !last:
			text += pad
		}
		out.WriteString(text)
		if !last {
			out.WriteString(gap)
		}
		at += widths[i] + len(gap)
	}
	out.WriteByte('\n')
}

func (t *Table) right(column int) bool {
	return column < len(t.Columns) && t.Columns[column].Right
}

func (t *Table) writeAcross(out *bufio.Writer, l line) {
	if l.across.Text != "" {
		out.WriteString(strings.Repeat(" ", l.indent))
		out.WriteString(l.across.Style.Paint(l.across.Text, t.Colour))
	}
	out.WriteByte('\n')
}

// writeWrapped prints a text that begins in column at, broken to the width of
// the table. The line is not ended.
func (t *Table) writeWrapped(out *bufio.Writer, c Cell, at int) {
	for i, part := range wrap(c.Text, t.Width-at) {
		if i > 0 {
			out.WriteByte('\n')
			out.WriteString(strings.Repeat(" ", at))
		}
		out.WriteString(c.Style.Paint(part, t.Colour))
	}
}

// narrowest is the width below which breaking a text makes it harder to read
// than letting the terminal do it.
const narrowest = 20

// wrap breaks text at spaces into parts of at most width columns. A word that
// is longer stays whole: it may be a path or a command to copy.
func wrap(text string, width int) []string {
	if width < narrowest || Width(text) <= width {
		return []string{text}
	}
	var parts []string
	part := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case part == "":
			part = word
		case Width(part)+1+Width(word) <= width:
			part += " " + word
		default:
			parts = append(parts, part)
			part = word
		}
	}
	return append(parts, part)
}
