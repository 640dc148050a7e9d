package report

import (
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

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

// gap separates two columns, as [term.Table] has it.
const gap = 2

// width is that of the table as text.
func (g *grid) width(stacked bool) int {
	total := -gap
	for _, w := range g.widths(stacked) {
		total += w + gap
	}
	return total
}

func (g *grid) widths(stacked bool) []int {
	tails, widths := g.tails(), make([]int, len(g.columns))
	for i, column := range g.columns {
		for _, row := range g.rows {
			widths[i] = max(widths[i], term.Width(row[i].joined(tails[i])))
		}
		for _, part := range titleParts(column.Title, stacked) {
			widths[i] = max(widths[i], term.Width(part))
		}
	}
	return widths
}

// headings are the titles, on more than one line if they are stacked: a long
// name then takes no more room than the figures below it.
func (g *grid) headings(stacked bool) [][]string {
	widths, columns, height := g.widths(stacked), make([][]string, len(g.columns)), 1
	for i, column := range g.columns {
		columns[i] = joinedTo(widths[i], titleParts(column.Title, stacked))
		height = max(height, len(columns[i]))
	}
	lines := make([][]string, height)
	for _, column := range columns {
		for line := range height {
			text := ""
			if at := line - (height - len(column)); at >= 0 { // the last line is the one above the figures
				text = column[at]
			}
			lines[line] = append(lines[line], text)
		}
	}
	return lines
}

// titleParts are what a title can be broken into: words, and the engine and
// the runtime of a target.
func titleParts(title string, stacked bool) []string {
	title = term.Clean(title)
	if !stacked {
		return []string{title}
	}
	var parts []string
	for word := range strings.FieldsSeq(title) {
		parts = append(parts, strings.SplitAfter(word, "/")...)
	}
	return parts
}

// joinedTo puts parts on as few lines as there can be in that width.
func joinedTo(width int, parts []string) []string {
	var lines []string
	for _, part := range parts {
		last := len(lines) - 1
		if last < 0 {
			lines = append(lines, part)
			continue
		}
		space := " "
		if strings.HasSuffix(lines[last], "/") {
			space = ""
		}
		if term.Width(lines[last]+space+part) <= width {
			lines[last] += space + part
			continue
		}
		lines = append(lines, part)
	}
	return lines
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
// Before a table is parted its headings are stacked.
func (s *spread) fitting(width int) (parts []*grid, stacked bool) {
	whole := s.whole()
	if width <= 0 || whole.width(false) <= width {
		return []*grid{whole}, false
	}
	if whole.width(true) <= width {
		return []*grid{whole}, true
	}
	var first []int
	if s.pivot >= 0 {
		first = []int{s.pivot}
	}
	part := first
	for _, thing := range s.order {
		if thing == s.pivot {
			continue
		}
		next := append(part[:len(part):len(part)], thing)
		if len(part) > len(first) && s.build(next).width(true) > width {
			parts = append(parts, s.build(part))
			next = append(first[:len(first):len(first)], thing)
		}
		part = next
	}
	return append(parts, s.build(part)), true
}
