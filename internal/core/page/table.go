package page

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
)

// Table is rows of cells in aligned columns. Where all its columns are too many
// for the page it is parted: the columns of a group stay together, and those
// without one stand in every part.
type Table struct {
	Columns []Column
	Rows    [][]Cell // each as long as Columns
	Sparse  bool     // a row that shows nothing in a part of the table is left out of it
	Indent  int      // spaces before every row
}

// Column is what all cells below each other have in common.
type Column struct {
	Title  string
	Right  bool    // numbers line up on the right
	Series bool    // cells are the series of their figures, drawn as lines
	Beside *Beside // what is drawn beside the numbers; nil: nothing
	Group  int     // from 1: columns that belong together, such as a target's; 0: in every part
}

// Names begins a table with columns of names, which stand in every part.
func Names(titles ...string) *Table {
	t := &Table{}
	for _, title := range titles {
		t.Columns = append(t.Columns, Column{Title: title})
	}
	return t
}

// Cell has up to two parts, so that the second ones line up below each other:
// "24.6 ms" and "±2 %".
type Cell struct {
	Head, Tail string
	Style      term.Style
	Label      string         // what a row is called where it can't be set below another one
	Figure     *figure.Figure // what it shows; nil of words

	by     *float64 // what rows are sorted by; nil: by the figure's estimate
	across bool     // it is a line of its own, and has no part in the columns
	indent int      // spaces before it, beside those of the table
}

// Words is a cell of text.
func Words(text string) Cell { return Cell{Head: text} }

// Texts are cells of text.
func Texts(all ...string) []Cell {
	cells := make([]Cell, len(all))
	for i, text := range all {
		cells[i].Head = text
	}
	return cells
}

// Row appends a row, or the names of one; columns of numbers come after.
func (t *Table) Row(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Line appends a text of its own, behind that many spaces, that has no part in the
// columns: the name of a group, or a command to paste, which is why it is never broken.
// An empty text gives an empty line.
func (t *Table) Line(indent int, text string, style term.Style) {
	t.Row(Cell{Head: text, Style: style, across: true, indent: indent - t.Indent})
}

// Add appends a column of numbers of a group of its own, one cell for each row.
func (t *Table) Add(title string, cells []Cell) {
	t.addColumn(Column{Title: title, Right: true}, cells)
}

// AddText appends a column whose texts begin below each other.
func (t *Table) AddText(title string, cells []Cell) { t.addColumn(Column{Title: title}, cells) }

// AddIf appends a column unless it shows nothing of any row.
func (t *Table) AddIf(title string, cells []Cell) {
	if slices.ContainsFunc(cells, func(c Cell) bool { return c.Head != Dot && c.Head != "" }) {
		t.Add(title, cells)
	}
}

// AddUnless appends a column unless nothing of it is known of any row.
func (t *Table) AddUnless(title string, cells []Cell) {
	if slices.ContainsFunc(cells, func(c Cell) bool { return c.Head != None }) {
		t.AddIf(title, cells)
	}
}

func (t *Table) addColumn(c Column, cells []Cell) {
	for _, other := range t.Columns {
		c.Group = max(c.Group, other.Group)
	}
	c.Group++
	t.Columns = append(t.Columns, c)
	for i := range t.Rows {
		t.Rows[i] = append(t.Rows[i], cells[i])
	}
}

// Each makes the cells of a column, one a row.
func Each[T any](rows []T, show func(*T) Cell) []Cell {
	out := make([]Cell, len(rows))
	for i := range rows {
		out[i] = show(&rows[i])
	}
	return out
}

// joined is the cell as one text, its tail set right in that many columns.
func (c Cell) joined(tail int) string {
	if c.Tail == "" {
		return c.Head
	}
	return c.Head + strings.Repeat(" ", max(tail-term.Width(c.Tail), 0)+1) + c.Tail
}

// tails is the width of the widest second part in every column.
func (t *Table) tails() []int {
	widths := make([]int, len(t.Columns))
	for _, row := range t.Rows {
		for i, c := range row {
			if i == len(widths) { // a table without titles says nothing of its columns
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], term.Width(c.Tail))
		}
	}
	return widths
}

// gap separates two columns.
const gap = 2

// width is that of the table as text.
func (t *Table) width(stacked bool) int {
	total := -gap
	for _, w := range t.widths(stacked) {
		total += w + gap
	}
	return total
}

func (t *Table) widths(stacked bool) []int {
	tails, widths := t.tails(), make([]int, len(t.Columns))
	for i, column := range t.Columns {
		for _, row := range t.Rows {
			if i < len(row) && !row[i].across {
				widths[i] = max(widths[i], term.Width(row[i].joined(tails[i])))
			}
		}
		for _, part := range titleParts(column.Title, stacked) {
			widths[i] = max(widths[i], term.Width(part))
		}
	}
	return widths
}

// headings are the titles, on more than one line if they are stacked: a long
// name then takes no more room than the figures below it.
func (t *Table) headings(stacked bool) [][]string {
	widths, columns, height := t.widths(stacked), make([][]string, len(t.Columns)), 1
	if !slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Title != "" }) {
		return nil
	}
	for i, column := range t.Columns {
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

// groups are those of the columns, in the order in which they appear.
func (t *Table) groups() (all []int) {
	for _, c := range t.Columns {
		if c.Group != 0 && !slices.Contains(all, c.Group) {
			all = append(all, c.Group)
		}
	}
	return all
}

// only is the table with some of its groups, behind what stands in every part.
func (t *Table) only(groups []int) *Table {
	part := &Table{Rows: make([][]Cell, len(t.Rows)), Indent: t.Indent}
	shows := make([]bool, len(t.Rows))
	for _, common := range []bool{true, false} {
		for i, c := range t.Columns {
			if (c.Group == 0) != common || !common && !slices.Contains(groups, c.Group) {
				continue
			}
			part.Columns = append(part.Columns, c)
			for r := range t.Rows {
				part.Rows[r] = append(part.Rows[r], t.Rows[r][i])
				shows[r] = shows[r] || !common && t.Rows[r][i].Head != ""
			}
		}
	}
	if t.Sparse {
		r := -1
		part.Rows = slices.DeleteFunc(part.Rows, func([]Cell) bool { r++; return !shows[r] })
	}
	return part
}

// loosened is the table with the columns of each group that is too wide by itself in
// groups of their own. Their titles then say whose they are: "host vs runc".
func (t *Table) loosened(width int) *Table {
	out := *t
	out.Columns = slices.Clone(t.Columns)
	all := t.groups()
	next := len(all)
	for _, group := range all {
		next = max(next, group)
	}
	for _, group := range all {
		if t.only([]int{group}).width(true) <= width {
			continue
		}
		whose := ""
		for i := range out.Columns {
			switch c := &out.Columns[i]; {
			case t.Columns[i].Group != group:
			case whose == "":
				whose = c.Title
			default:
				next++
				c.Group, c.Title = next, whose+" "+c.Title
			}
		}
	}
	return &out
}

// fitting are the tables for as many groups at a time as fit in the width. Before
// a table is parted its headings are stacked.
func (t *Table) fitting(width int) (parts []*Table, stacked bool) {
	if width <= 0 || t.width(false) <= width {
		return []*Table{t}, false
	}
	if t.width(true) <= width {
		return []*Table{t}, true
	}
	t = t.loosened(width)
	var part []int
	for _, group := range t.groups() {
		next := append(slices.Clip(part), group)
		if len(part) > 0 && t.only(next).width(true) > width {
			parts = append(parts, t.only(part))
			next = []int{group}
		}
		part = next
	}
	return append(parts, t.only(part)), true
}
