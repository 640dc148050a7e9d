package report

import "github.com/tare-bench/tare/internal/term"

// grid is a table that fits on a page.
type grid struct {
	columns []term.Column
	rows    [][]cell
}

// cell has up to two parts, so that the second ones line up below each other:
// "24.6 ms" and "±2 %".
type cell struct {
	head, tail string
	style      term.Style
	label      string // what a row is called where it can't be set below another one
}

func plain(text string) cell { return cell{head: text} }

// joined is the cell as one text, its tail set right in that many columns.
func (c cell) joined(tail int) string {
	if c.tail == "" {
		return c.head
	}
	pad := " "
	for n := tail - term.Width(c.tail); n > 0; n-- {
		pad += " "
	}
	return c.head + pad + c.tail
}

// tails is the width of the widest second part in every column.
func (g *grid) tails() []int {
	widths := make([]int, len(g.columns))
	for _, row := range g.rows {
		for i, c := range row {
			widths[i] = max(widths[i], term.Width(c.tail))
		}
	}
	return widths
}

// width is that of the table as text.
func (g *grid) width() int {
	const gap = 2 // as term.Table has it
	tails, total := g.tails(), -gap
	for i, column := range g.columns {
		widest := term.Width(column.Title)
		for _, row := range g.rows {
			widest = max(widest, term.Width(row[i].joined(tails[i])))
		}
		total += widest + gap
	}
	return total
}

// spread is a table over a number of things side by side, mostly targets. It
// can be drawn for some of them, where all are too many for the page.
type spread struct {
	order []int // of the things
	pivot int   // the one that stands first in every part; -1 none
	build func(things []int) *grid
}

// whole is the table for all things.
func (s *spread) whole() *grid { return s.build(s.order) }

// fitting are the tables for as many things at a time as fit in the width.
func (s *spread) fitting(width int) []*grid {
	whole := s.whole()
	if width <= 0 || whole.width() <= width {
		return []*grid{whole}
	}
	var first []int
	if s.pivot >= 0 {
		first = []int{s.pivot}
	}
	var out []*grid
	part := first
	for _, thing := range s.order {
		if thing == s.pivot {
			continue
		}
		next := append(part[:len(part):len(part)], thing)
		if len(part) > len(first) && s.build(next).width() > width {
			out = append(out, s.build(part))
			next = append(first[:len(first):len(first)], thing)
		}
		part = next
	}
	return append(out, s.build(part))
}
