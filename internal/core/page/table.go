package page

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
)

// Table is rows of cells in aligned columns. A table that is too wide for the page is split.
// The columns of a group stay together. Columns without a group are repeated in every part.
type Table struct {
	Columns []Column
	Rows    [][]Cell // each as long as Columns
	Sparse  bool     // a part of the table omits rows that are empty in it
	Indent  int      // spaces before every row
}

// Column describes a column of cells.
type Column struct {
	Title  string
	Right  bool    // right-aligned, as numbers are
	Series bool    // cells are the series of their figures, drawn as lines
	Beside *Beside // drawing next to the numbers; nil: none
	Group  int     // from 1: columns that stay together, such as a target's; 0: in every part
}

// Names returns a table with columns of names, which are repeated in every part.
func Names(titles ...string) *Table {
	t := &Table{}
	for _, title := range titles {
		t.Columns = append(t.Columns, Column{Title: title})
	}
	return t
}

// Cell has up to two parts, such as "24.6 ms" and "±2 %". Second parts are aligned.
type Cell struct {
	Head, Tail string
	Style      term.Style
	Label      string         // name of the row where it cannot be placed below another row
	Figure     *figure.Figure // the figure shown; nil for text

	by     *float64 // sort key; nil: the figure's estimate
	across bool     // the cell is a full line, outside the columns
	indent int      // extra spaces before the cell
}

// Words returns a cell of text.
func Words(text string) Cell { return Cell{Head: text} }

// Texts returns a cell for each text.
func Texts(all ...string) []Cell {
	cells := make([]Cell, len(all))
	for i, text := range all {
		cells[i].Head = text
	}
	return cells
}

// Row appends a row. If columns of numbers are added later, pass only the row's names.
func (t *Table) Row(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Line appends a full line that is outside the columns, indented by that many spaces. It is
// the name of a group or a command to paste, so it is never wrapped. An empty text adds an
// empty line.
func (t *Table) Line(indent int, text string, style term.Style) {
	t.Row(Cell{Head: text, Style: style, across: true, indent: indent - t.Indent})
}

// Add appends a right-aligned column in a new group, with one cell for each row.
func (t *Table) Add(title string, cells []Cell) {
	t.addColumn(Column{Title: title, Right: true}, cells)
}

// AddText appends a left-aligned column.
func (t *Table) AddText(title string, cells []Cell) { t.addColumn(Column{Title: title}, cells) }

// AddIf appends a column unless all its cells are empty or [Dot].
func (t *Table) AddIf(title string, cells []Cell) {
	if slices.ContainsFunc(cells, func(c Cell) bool { return c.Head != Dot && c.Head != "" }) {
		t.Add(title, cells)
	}
}

// AddUnless appends a column unless all its cells are [None], or all are empty or [Dot].
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

// Each returns the cells of a column, one per row.
func Each[T any](rows []T, show func(*T) Cell) []Cell {
	out := make([]Cell, len(rows))
	for i := range rows {
		out[i] = show(&rows[i])
	}
	return out
}

// joined returns the cell as one text. The tail is right-aligned in that many columns.
func (c Cell) joined(tail int) string {
	if c.Tail == "" {
		return c.Head
	}
	return c.Head + strings.Repeat(" ", max(tail-term.Width(c.Tail), 0)+1) + c.Tail
}

// tails returns the width of the widest second part of each column.
func (t *Table) tails() []int {
	widths := make([]int, len(t.Columns))
	for _, row := range t.Rows {
		for i, c := range row {
			if i == len(widths) { // a table without titles has no Columns
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], term.Width(c.Tail))
		}
	}
	return widths
}

// gap is the number of spaces between two columns.
const gap = 2

// width returns the width of the table as text.
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

// headings returns the lines of the titles. Stacked titles take several lines, so that a long
// name is not wider than its figures.
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
			if at := line - (height - len(column)); at >= 0 { // titles are aligned at the bottom
				text = column[at]
			}
			lines[line] = append(lines[line], text)
		}
	}
	return lines
}

// titleParts splits a title at spaces, and a target at the slash between engine and runtime.
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

// joinedTo joins parts into as few lines of that width as possible.
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

// groups returns the groups of the columns in order of appearance.
func (t *Table) groups() (all []int) {
	for _, c := range t.Columns {
		if c.Group != 0 && !slices.Contains(all, c.Group) {
			all = append(all, c.Group)
		}
	}
	return all
}

// only returns the table with some of its groups. Columns without a group come first.
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

// loosened splits each group that is too wide into groups of one column. The title of the
// original group becomes a prefix of the columns' titles: "host vs runc".
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

// fitting splits the table into parts that fit in the width. It stacks the headings before it
// splits the table.
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
