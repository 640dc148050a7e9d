package top

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/live"
	"github.com/tare-bench/tare/internal/term"
)

// column is a column of the table. On a narrow terminal, columns of higher rank are
// hidden first.
type column struct {
	title live.Title
	width int
	rank  int
	sort  Sort
	text  func(s *Sandbox) string
}

var columns = []column{
	{"ENGINE", 10, 5, "", func(s *Sandbox) string { return s.engine() }},
	{"CPU%", 6, 0, SortCPU, func(s *Sandbox) string { return percent(s.CPU) }},
	{"MEMORY", 7, 0, SortMemory, func(s *Sandbox) string { return size(s.Memory) }},
	{"OUTSIDE", 8, 1, SortOverhead, func(s *Sandbox) string { return size(s.MemoryOutside) }},
	{"BESIDE", 7, 2, SortOverhead, func(s *Sandbox) string { return size(s.beside()) }},
	{"CACHE", 6, 3, SortCache, func(s *Sandbox) string { return size(s.Cache) }},
	{"IO/s", 6, 4, SortIO, func(s *Sandbox) string { return size(s.io()) }},
	{"PROCS", 5, 6, "", func(s *Sandbox) string { return strconv.Itoa(s.Processes) }},
	{"LIMIT", 6, 7, "", func(s *Sandbox) string { return orDash(s.Limit.OK, size(s.Limit)) }},
	{"FULL%", 5, 8, "", func(s *Sandbox) string { return orDash(s.Full.OK, percent(s.Full)) }},
}

func orDash(ok bool, text string) string {
	if ok {
		return text
	}
	return "-"
}

const (
	narrowest = 20  // width of a table
	widest    = 400 //
	shortName = 14  // least width of a name: twelve characters of an id and a mark
	longName  = 48
)

// layout is the columns that fit a width.
type layout struct {
	width, name int
	columns     []column
	left        []string // titles of hidden columns
}

// ColumnNames returns the names of the columns, for --columns.
func ColumnNames() []string {
	return live.Names(columns, func(c *column) live.Title { return c.title })
}

// layOut returns the requested columns that fit a width.
func layOut(width int, list []Sandbox, sel *Selection) layout {
	width = min(max(width, narrowest), widest)
	for rank := len(columns); ; rank-- {
		l := layout{width: width, name: width}
		for _, c := range columns {
			switch {
			case len(sel.Columns) > 0 && !slices.Contains(sel.Columns, c.title.Name()):
			case c.rank < rank:
				l.columns = append(l.columns, c)
				l.name -= c.width + 1
			default:
				l.left = append(l.left, string(c.title))
			}
		}
		if l.name >= shortName || rank == 1 {
			l.widen(list)
			return l
		}
	}
}

// widen distributes the remaining width: first to names, then to engines.
func (l *layout) widen(list []Sandbox) {
	name, engine := shortName, 0
	for i := range list {
		name = max(name, min(longName, term.Width(list[i].Name)+2))
		engine = max(engine, len(list[i].engine()))
	}
	left := max(0, l.name-name)
	l.name = max(1, l.name-left)
	for i := range l.columns {
		if c := &l.columns[i]; c.title == "ENGINE" {
			c.width += max(0, min(left, engine-c.width))
		}
	}
}

func (l *layout) row(name string, cells func(*column) string) string {
	var b strings.Builder
	b.WriteString(pad(name, l.name, false))
	for i := range l.columns {
		c := &l.columns[i]
		b.WriteByte(' ')
		b.WriteString(pad(cells(c), c.width, c.title != "ENGINE"))
	}
	return strings.TrimRight(b.String(), " ")
}

// heading marks the column of the sort order.
func (l *layout) heading(sel *Selection) string {
	title := "SANDBOX"
	if sel.Sort == SortName {
		title = "SANDBOX*"
	}
	return l.row(title, func(c *column) string {
		if c.sort == sel.order() && len(c.title) < c.width {
			return string(c.title) + "*"
		}
		return string(c.title)
	})
}

func (l *layout) sandbox(s *Sandbox, mark string) string {
	return l.row(mark+s.Name, func(c *column) string { return c.text(s) })
}

// wrap breaks a text at spaces. If the text is a key, two or more spaces and an explanation,
// continuation lines are aligned with the explanation.
func wrap(text string, width int) []string {
	head, rest, _ := strings.Cut(text, "  ")
	hang := len(text) - len(strings.TrimLeft(rest, " "))
	if hang > width/2 || head == text {
		hang = 0
	}
	lines := flow(strings.Fields(text[hang:]), width-hang, " ")
	if len(lines) == 0 {
		return []string{""}
	}
	for i := range lines {
		lines[i] = strings.Repeat(" ", hang) + lines[i]
	}
	lines[0] = text[:hang] + lines[0][hang:]
	return lines
}
