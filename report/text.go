package report

import (
	"io"

	"github.com/tare-bench/tare/internal/term"
)

// writeText draws a page for a terminal. Everything passes term.Table, which
// cleans it.
func writeText(w io.Writer, p *page, o Options) error {
	t := term.Table{Width: o.Width, Colour: o.Colour}
	for _, line := range p.head {
		t.AddLine(0, line, term.Plain)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for i := range p.sections {
		if err := textSection(w, &p.sections[i], o); err != nil {
			return err
		}
	}
	return nil
}

func textSection(w io.Writer, s *section, o Options) error {
	title := term.Table{Width: o.Width, Colour: o.Colour}
	title.AddLine(0, "", term.Plain)
	title.AddLine(0, s.title, s.style)
	if err := title.Write(w); err != nil {
		return err
	}
	if s.table != nil {
		for i, g := range s.table.fitting(o.Width - textIndent(o.Width)) {
			if err := textGrid(w, g, i > 0, o); err != nil {
				return err
			}
		}
	}
	if err := textLists(w, s.lists, o); err != nil {
		return err
	}
	notes := term.Table{Width: o.Width, Colour: o.Colour}
	for _, note := range s.notes {
		notes.AddLine(indent, note, term.Dim)
	}
	return notes.Write(w)
}

const indent = 2

// textIndent is what the indent takes from a width that is limited.
func textIndent(width int) int {
	if width <= 0 {
		return 0
	}
	return indent
}

func textGrid(w io.Writer, g *grid, more bool, o Options) error {
	if more {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	t := term.Table{Columns: g.columns, Indent: indent, Colour: o.Colour}
	tails := g.tails()
	for _, row := range g.rows {
		cells := make([]term.Cell, len(row))
		for i, c := range row {
			cells[i] = term.Cell{Text: c.joined(tails[i]), Style: c.style}
		}
		t.AddCells(cells...)
	}
	return t.Write(w)
}

func textLists(w io.Writer, lists []list, o Options) error {
	t := term.Table{Width: o.Width, Colour: o.Colour, Indent: indent}
	for _, l := range lists {
		if l.heading != "" {
			t.AddLine(indent, l.heading, term.Plain)
			t.Indent = 2 * indent
		}
		for _, item := range l.items {
			t.AddCells(term.Cell{Text: item.key, Style: item.style}, term.Cell{Text: item.text})
		}
	}
	return t.Write(w)
}
