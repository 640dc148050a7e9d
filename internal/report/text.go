package report

import (
	"io"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

// writeText draws a page for a terminal. Everything passes term.Table, which
// cleans it.
func writeText(w io.Writer, p *page, o Options) error {
	t := table(o, 0)
	if p.title != "" {
		t.AddCells(term.Cell{Text: p.title, Style: term.Bold})
	}
	for _, line := range p.head {
		t.Add(line)
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

// indent is where tables and lists begin.
const indent = 2

func table(o Options, indent int) *term.Table {
	return &term.Table{Width: o.Width, Colour: o.Colour, Indent: indent}
}

func textSection(w io.Writer, s *section, o Options) error {
	title := table(o, 0)
	title.AddLine(0, "", term.Plain)
	title.AddCells(term.Cell{Text: s.title, Style: s.style})
	if err := title.Write(w); err != nil {
		return err
	}
	if s.table != nil {
		width := o.Width
		if width > 0 {
			width = max(width-indent, 1) // 0 would be no limit
		}
		parts, stacked := s.table.fitting(width)
		for i, g := range parts {
			if err := textGrid(w, g, stacked, i > 0, o); err != nil {
				return err
			}
		}
	}
	if err := textLists(w, s.lists, o); err != nil {
		return err
	}
	if s.block != nil {
		lines := table(o, 0)
		for _, line := range s.block.lines {
			lines.AddLine(2*indent, line, term.Plain) // to be pasted, so never broken
		}
		if err := lines.Write(w); err != nil {
			return err
		}
	}
	notes := table(o, indent)
	for _, note := range s.notes {
		notes.AddCells(term.Cell{Text: note, Style: term.Dim})
	}
	return notes.Write(w)
}

func textGrid(w io.Writer, g *grid, stacked, more bool, o Options) error {
	t := term.Table{Indent: indent, Colour: o.Colour}
	for _, c := range g.columns {
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
	t := table(o, indent)
	for _, l := range lists {
		if l.heading != "" {
			t.AddLine(indent, l.heading, term.Plain)
			t.Indent = 2 * indent
		}
		var names []cell // of the item above that are still to be shown
		row := func(text string) {
			cells := []term.Cell{{}, {Text: text}}
			if len(names) > 0 {
				cells[0], names = term.Cell{Text: names[0].head, Style: names[0].style}, names[1:]
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
		for _, item := range l.items {
			if item.code && item.key == "" { // to be pasted, so never broken
				rest()
				t.AddLine(indent+len("warning  "), item.text, term.Plain)
				continue
			}
			if item.key != "" {
				rest()
				names = stackedKeys(item.key, item.style)
			}
			row(item.text)
		}
		rest()
	}
	return t.Write(w)
}

// longestKey is how wide several names in one key are side by side; above it
// they stand below each other, and leave room for the text.
const longestKey = longestName

func stackedKeys(key string, style term.Style) (names []cell) {
	parts := []string{key}
	if term.Width(term.Clean(key)) > longestKey {
		parts = strings.SplitAfter(key, ", ")
	}
	for _, part := range parts {
		names = append(names, cell{head: part, style: style})
	}
	return names
}
