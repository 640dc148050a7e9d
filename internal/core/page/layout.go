package page

import (
	"bufio"
	"io"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

// Write draws the table for a terminal: titles, if any, and columns as wide as their widest
// cell. It wraps the last column at spaces to the width in the options and indents the
// continuation. A terminal's own line wrapping would break the columns.
func (t *Table) Write(w io.Writer, o Options) error { return t.write(w, o, false) }

func (t *Table) write(w io.Writer, o Options, stacked bool) error {
	t = t.cleaned(term.IsASCII(w))
	var lines [][]Cell
	for _, titles := range t.headings(stacked) {
		heading := Texts(titles...)
		for i := range heading {
			heading[i].Style = term.Bold
		}
		lines = append(lines, heading)
	}
	tails := t.tails()
	for _, row := range t.Rows {
		for i := range row {
			row[i].Head, row[i].Tail = row[i].joined(tails[i]), ""
		}
		lines = append(lines, row)
	}
	widths := make([]int, len(tails))
	for _, line := range lines {
		for i, c := range line {
			if !c.across {
				widths[i] = max(widths[i], term.Width(c.Head))
			}
		}
	}
	d := drawing{Writer: bufio.NewWriter(w), columns: t.Columns, widths: widths, o: o}
	for _, line := range lines {
		d.line(line, t.Indent)
	}
	return d.Flush()
}

// cleaned returns the table with texts that are safe for a terminal, in ASCII if required.
func (t *Table) cleaned(ascii bool) *Table {
	shown := term.Clean
	if ascii {
		shown = func(s string) string { return term.ASCII(term.Clean(s)) }
	}
	out := &Table{Columns: slices.Clone(t.Columns), Indent: t.Indent, Rows: make([][]Cell, len(t.Rows))}
	for i := range out.Columns {
		out.Columns[i].Title = shown(out.Columns[i].Title)
	}
	for r, row := range t.Rows {
		for _, c := range row {
			c.Head, c.Tail = shown(c.Head), shown(c.Tail)
			out.Rows[r] = append(out.Rows[r], c)
		}
	}
	return out
}

// drawing writes lines in columns of fixed widths.
type drawing struct {
	*bufio.Writer
	columns []Column
	widths  []int
	o       Options
}

func (d *drawing) line(cells []Cell, indent int) {
	for len(cells) > 0 && cells[len(cells)-1].Head == "" {
		cells = cells[:len(cells)-1] // no trailing spaces
	}
	at := indent
	if len(cells) > 0 {
		at += cells[0].indent
		d.WriteString(strings.Repeat(" ", at))
	}
	for i, c := range cells {
		last, right := i == len(cells)-1, i < len(d.columns) && d.columns[i].Right
		if c.across {
			d.WriteString(c.Style.Paint(c.Head, d.o.Colour))
			break
		}
		if last && !right {
			d.wrapped(c, at)
			break
		}
		pad := strings.Repeat(" ", d.widths[i]-term.Width(c.Head))
		text := c.Style.Paint(c.Head, d.o.Colour)
		switch {
		case right:
			text = pad + text
		case !last:
			text += pad
		}
		d.WriteString(text)
		if !last {
			d.WriteString(strings.Repeat(" ", gap))
		}
		at += d.widths[i] + gap
	}
	d.WriteByte('\n')
}

// wrapped draws a text that begins in column at. It does not end the line.
func (d *drawing) wrapped(c Cell, at int) {
	for i, part := range wrap(c.Head, d.o.Width-at) {
		if i > 0 {
			d.WriteString("\n" + strings.Repeat(" ", at))
		}
		d.WriteString(c.Style.Paint(part, d.o.Colour))
	}
}

// narrowest is the minimum width for wrapping. Below it, the terminal's own wrapping is
// easier to read.
const narrowest = 20

// wrap splits text at spaces into parts of at most width columns. It never splits a longer
// word, which may be a path or a command to copy.
func wrap(text string, width int) []string {
	if width < narrowest || term.Width(text) <= width {
		return []string{text}
	}
	var parts []string
	part := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case part == "":
			part = word
		case term.Width(part)+1+term.Width(word) <= width:
			part += " " + word
		default:
			parts = append(parts, part)
			part = word
		}
	}
	return append(parts, part)
}
