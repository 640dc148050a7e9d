package page

import (
	"io"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

// writeText renders a page for a terminal.
func writeText(w io.Writer, p *Page, o Options) error {
	t := Table{}
	if p.Title != "" {
		t.Row(Cell{Head: p.Title, Style: term.Bold})
	}
	for _, line := range p.Head {
		t.Row(Words(line))
	}
	if p.Answer != nil {
		t.Row()
	}
	for _, sentence := range p.Answer {
		t.Row(Cell{Head: sentence, Style: term.Bold})
	}
	if err := t.Write(w, o); err != nil {
		return err
	}
	left := 0
	for i := range p.Sections {
		if s := &p.Sections[i]; s.Detail && !o.Verbose {
			left++
			continue
		}
		if err := textSection(w, &p.Sections[i], o); err != nil {
			return err
		}
	}
	t = Table{}
	if left > 0 || p.Answer != nil {
		t.Row()
	}
	if left > 0 {
		t.Row(Cell{Head: Amount(left, "more section") + ": --details", Style: term.Dim})
	}
	if p.Answer != nil {
		t.Row(Cell{Head: "→ " + p.Answer[0], Style: term.Bold})
	}
	return t.Write(w, o)
}

// indent is the indentation of tables and lists.
const indent = 2

func textSection(w io.Writer, s *Section, o Options) error {
	title := Table{}
	title.Line(0, "", term.Plain)
	title.Row(Cell{Head: s.Title, Style: s.Style})
	if err := title.Write(w, o); err != nil {
		return err
	}
	if s.Picture != nil {
		if err := s.Picture.text(w, o); err != nil {
			return err
		}
	}
	if s.Table != nil {
		if err := textTable(w, s.Table, o); err != nil {
			return err
		}
	}
	lists := s.Lists
	if s.Part == Mistrust && !o.Verbose {
		lists = brief(lists)
	}
	if err := textLists(w, lists, o); err != nil {
		return err
	}
	rest := Table{Indent: indent}
	if s.Block != nil {
		for _, line := range s.Block.Lines {
			rest.Line(2*indent, line, term.Plain) // to be pasted, so never wrapped
		}
	}
	for _, note := range s.Notes {
		rest.Row(Cell{Head: note, Style: term.Dim})
	}
	return rest.Write(w, o)
}

// On a terminal, only the worst findings are shown, in a line or two each. With --details all
// are shown in full.
const mostBrief, longestBrief, longestAdvice = 3, 150, 105

func brief(lists []List) []List {
	out := slices.Clone(lists)
	for i := range out {
		var items []Item
		n := 0
		for _, item := range out[i].Items {
			if item.Key != "" {
				n++
			}
			switch {
			case item.Code:
			case item.Key == "":
				item.Text = Short(term.Clean(item.Text), longestAdvice)
			default:
				item.Text = Short(term.Clean(item.Text), longestBrief)
			}
			if n <= mostBrief {
				items = append(items, item)
			}
		}
		if n > mostBrief {
			items = append(items, Item{Key: "and", Text: Amount(n-mostBrief, "more finding") + ": --details"})
		}
		out[i].Items = items
	}
	return out
}

// textTable draws a table, split into parts if it is too wide.
func textTable(w io.Writer, t *Table, o Options) error {
	width := o.Width
	if width > 0 {
		width = max(width-indent, 1) // 0 would mean unlimited
	}
	t = t.drawn(width)
	if o.Colour { // a terminal that allows more than plain text
		t = t.barred(width)
	}
	parts, stacked := t.fitting(width)
	for i, part := range parts {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		part.Indent = indent
		if err := part.write(w, Options{Colour: o.Colour}, stacked); err != nil {
			return err
		}
	}
	return nil
}

func textLists(w io.Writer, lists []List, o Options) error {
	t := Table{Indent: indent}
	deeper := 0 // extra indentation below a heading
	for _, l := range lists {
		if l.Heading != "" {
			t.Line(indent, l.Heading, term.Plain)
			deeper = indent
		}
		var names []Cell // remaining lines of the current key
		row := func(text string) {
			cells := []Cell{{}, {Head: text}}
			if len(names) > 0 {
				cells[0], names = names[0], names[1:]
			}
			cells[0].indent = deeper
			t.Row(cells...)
		}
		rest := func() {
			for len(names) > 0 {
				row("")
			}
		}
		for _, item := range l.Items {
			if item.Code && item.Key == "" { // to be pasted, so never wrapped
				rest()
				t.Line(indent+len("warning  "), item.Text, term.Plain)
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
	return t.Write(w, o)
}

// longestKey is the maximum width of several names on one line of a key. Longer lists are
// stacked to leave room for the text.
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
