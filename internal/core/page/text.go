package page

import (
	"io"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

// writeText draws a page for a terminal.
func writeText(w io.Writer, p *Page, o Options) error {
	t := table(o, 0)
	if p.Title != "" {
		t.AddCells(term.Cell{Text: p.Title, Style: term.Bold})
	}
	for _, line := range p.Head {
		t.Add(line)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for i := range p.Sections {
		if err := textSection(w, &p.Sections[i], o); err != nil {
			return err
		}
	}
	return nil
}

// indent is where tables and lists begin.
const indent = 2

func table(o Options, indent int) *term.Table {
	return &term.Table{Width: o.Width, Colour: o.Colour, Indent: indent}
}

func textSection(w io.Writer, s *Section, o Options) error {
	title := table(o, 0)
	title.AddLine(0, "", term.Plain)
	title.AddCells(term.Cell{Text: s.Title, Style: s.Style})
	if err := title.Write(w); err != nil {
		return err
	}
	if s.Picture != nil {
		if err := s.Picture.text(w, o); err != nil {
			return err
		}
	}
	if s.Table != nil {
		width := o.Width
		if width > 0 {
			width = max(width-indent, 1) // 0 would be no limit
		}
		parts, stacked := s.Table.drawn(width).fitting(width)
		for i, g := range parts {
			if err := textTable(w, g, stacked, i > 0, o); err != nil {
				return err
			}
		}
	}
	if err := textLists(w, s.Lists, o); err != nil {
		return err
	}
	if s.Block != nil {
		lines := table(o, 0)
		for _, line := range s.Block.Lines {
			lines.AddLine(2*indent, line, term.Plain) // to be pasted, so never broken
		}
		if err := lines.Write(w); err != nil {
			return err
		}
	}
	notes := table(o, indent)
	for _, note := range s.Notes {
		notes.AddCells(term.Cell{Text: note, Style: term.Dim})
	}
	return notes.Write(w)
}

func textTable(w io.Writer, g *Table, stacked, more bool, o Options) error {
	t := term.Table{Indent: indent, Colour: o.Colour}
	for _, c := range g.Columns {
		t.Columns = append(t.Columns, term.Column{Right: c.Right})
	}
	if more {
		t.AddLine(0, "", term.Plain)
	}
	for _, titles := range g.headings(stacked) {
		cells := make([]term.Cell, len(titles))
		for i, title := range titles {
			cells[i] = term.Cell{Text: title, Style: term.Bold}
		}
		t.AddCells(cells...)
	}
	tails := g.tails()
	for _, row := range g.Rows {
		cells := make([]term.Cell, len(row))
		for i, c := range row {
			cells[i] = term.Cell{Text: c.joined(tails[i]), Style: c.Style}
		}
		t.AddCells(cells...)
	}
	return t.Write(w)
}

func textLists(w io.Writer, lists []List, o Options) error {
	t := table(o, indent)
	for _, l := range lists {
		if l.Heading != "" {
			t.AddLine(indent, l.Heading, term.Plain)
			t.Indent = 2 * indent
		}
		var names []Cell // of the item above that are still to be shown
		row := func(text string) {
			cells := []term.Cell{{}, {Text: text}}
			if len(names) > 0 {
				cells[0], names = term.Cell{Text: names[0].Head, Style: names[0].Style}, names[1:]
			}
			if text == "" {
				cells = cells[:1]
			}
			t.AddCells(cells...)
		}
		rest := func() {
			for len(names) > 0 {
				row("")
			}
		}
		for _, item := range l.Items {
			if item.Code && item.Key == "" { // to be pasted, so never broken
				rest()
				t.AddLine(indent+len("warning  "), item.Text, term.Plain)
				continue
			}
			if item.Key != "" {
				rest()
				names = stackedKeys(item.Key, item.Style)
			}
			row(item.Text)
		}
		rest()
	}
	return t.Write(w)
}

// longestKey is how wide several names in one key are side by side; above it
// they stand below each other, and leave room for the text.
const longestKey = LongestName

func stackedKeys(key string, style term.Style) (names []Cell) {
	parts := []string{key}
	if term.Width(term.Clean(key)) > longestKey {
		parts = strings.SplitAfter(key, ", ")
	}
	for _, part := range parts {
		names = append(names, Cell{Head: part, Style: style})
	}
	return names
}
