package bpflist

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/live"
)

// column is a column of the table of programs. cell returns a text and the number to sort by:
// NaN for words, and for a number that is unknown.
type column struct {
	title live.Title
	right bool
	cell  func(*Program) (string, float64)
}

var programColumns = []column{
	{"ID", true, func(p *Program) (string, float64) { return whole(p.ID), float64(p.ID) }},
	{"KIND", false, words(func(p *Program) string { return p.Kind })},
	{"NAME", false, words((*Program).label)},
	{"RUNS/s", true, rated(func(r *Rate) (string, float64) { return count(r.PerSec), r.PerSec })},
	{"AVG ns", true, rated(mean)},
	{"CORE%", true, rated(func(r *Rate) (string, float64) { return percent(r.Core), r.Core })},
	{"NODE%", true, rated(func(r *Rate) (string, float64) { return percent(r.Node), r.Node })},
	{"MISSES", true, func(p *Program) (string, float64) { return whole(p.misses()), float64(p.misses()) }},
	{"MEMORY", true, (*Program).memory},
	{"IN MAPS", true, (*Program).mapMemory},
	{"MAPS", false, words((*Program).mapIDs)},
	{"OWNER", false, words(func(p *Program) string { return joined(p.Owner, few(p.Holders, 1)) })},
	{"ATTACHED", false, words(func(p *Program) string { return few(p.Attached, 2) })},
	{"PINS", false, words(func(p *Program) string { return few(p.Pins, 1) })},
}

func words(text func(*Program) string) func(*Program) (string, float64) {
	return func(p *Program) (string, float64) { return text(p), math.NaN() }
}

func rated(cell func(*Rate) (string, float64)) func(*Program) (string, float64) {
	return func(p *Program) (string, float64) {
		if p.Rate == nil {
			return none, math.NaN()
		}
		return cell(p.Rate)
	}
}

// ColumnNames returns the names of the columns, for --columns and --sort.
func ColumnNames() []string {
	return live.Names(programColumns, func(c *column) live.Title { return c.title })
}

// Selection sets the order and the columns of the table.
type Selection struct {
	Sort    string   // the name of a column; "": by CPU time in the live view, else by id
	Reverse bool     // numbers are descending otherwise, words ascending
	Columns []string // by name; empty: all
}

// row is a program in the table, with the cell to sort by.
type row struct {
	cells  []string
	text   string
	number float64
}

// table returns the table of programs. Unknown numbers come last in both orders.
func (s *Selection) table(programs []Program) (t page.Table) {
	rows, numbers, way := make([]row, len(programs)), false, 1
	for _, c := range programColumns {
		sorts := c.title.Name() == s.Sort
		numbers = numbers || sorts && c.right
		shown := len(s.Columns) == 0 || slices.Contains(s.Columns, c.title.Name())
		if shown {
			t.Columns = append(t.Columns, page.Column{Title: string(c.title), Right: c.right})
		}
		for i := range rows {
			text, number := c.cell(&programs[i])
			if sorts {
				rows[i].text, rows[i].number = text, number
			}
			if shown {
				rows[i].cells = append(rows[i].cells, text)
			}
		}
	}
	if s.Reverse {
		way = -1
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		switch {
		case !numbers:
			return way * strings.Compare(a.text, b.text)
		case math.IsNaN(a.number) || math.IsNaN(b.number): // NaN is less than any number
			return cmp.Compare(b.number, a.number)
		}
		return way * cmp.Compare(b.number, a.number)
	})
	for _, r := range rows {
		t.Row(page.Texts(r.cells...)...)
	}
	return t
}

// label returns the name of a program, or its tag.
func (p *Program) label() string {
	name := cmp.Or(p.name(), "tag "+p.Tag)
	if p.Gone {
		name += " (went)"
	}
	return name
}

func mean(r *Rate) (string, float64) {
	if r.Runs == 0 {
		return none, math.NaN()
	}
	return count(r.Mean), r.Mean
}

// misses returns the misses of the interval, or those since loading if there is none.
func (p *Program) misses() uint64 {
	if p.Rate == nil {
		return p.Misses
	}
	return p.Rate.Misses
}

func (p *Program) memory() (string, float64) {
	if p.Memory < 0 {
		return unknown, math.NaN()
	}
	return size(p.Memory), float64(p.Memory)
}

// mapMemory returns the memory of the program's maps, with a "*" if other programs use one too.
func (p *Program) mapMemory() (string, float64) {
	sum, shared := int64(0), ""
	for _, a := range p.Maps {
		if a.Memory < 0 || a.InnerMemory < 0 {
			return unknown, math.NaN()
		}
		sum += a.Memory + a.InnerMemory
		if a.Shared > 1 {
			shared = "*"
		}
	}
	return size(sum) + shared, float64(sum)
}

// mapIDs returns the first ids of the program's maps, with a "*" if other programs use one too.
func (p *Program) mapIDs() string {
	var ids []string
	for _, a := range p.Maps {
		id := whole(a.ID)
		if a.Shared > 1 {
			id += "*"
		}
		ids = append(ids, id)
	}
	if len(ids) > 4 {
		ids = append(ids[:4], fmt.Sprintf("+%d", len(ids)-4))
	}
	return strings.Join(ids, " ")
}

// joined joins the texts that are not empty.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), ": ")
}
