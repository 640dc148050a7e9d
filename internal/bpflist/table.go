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
	title string
	right bool
	cell  func(*Program) (string, float64)
}

// name returns the name of the column for --columns and --sort.
func (c *column) name() string { return live.ColumnName(c.title) }

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
func ColumnNames() (names []string) {
	for i := range programColumns {
		names = append(names, programColumns[i].name())
	}
	return names
}

// Selection sets the order and the columns of the table.
type Selection struct {
	Sort    string   // the name of a column; "": by CPU time in the live view, else by id
	Reverse bool     // numbers are descending otherwise, words ascending
	Columns []string // by name; empty: all
}

// table returns the table of programs. Unknown numbers come last in both orders.
func (s *Selection) table(programs []Program) (t page.Table) {
	if at := slices.IndexFunc(programColumns, func(c column) bool { return c.name() == s.Sort }); at >= 0 {
		by, way := programColumns[at], 1
		if s.Reverse {
			way = -1
		}
		programs = slices.Clone(programs)
		slices.SortStableFunc(programs, func(a, b Program) int {
			text, x := by.cell(&a)
			other, y := by.cell(&b)
			switch {
			case !by.right:
				return way * strings.Compare(text, other)
			case math.IsNaN(x) || math.IsNaN(y): // NaN is less than any number
				return cmp.Compare(y, x)
			}
			return way * cmp.Compare(y, x)
		})
	}
	shown := slices.Clone(programColumns)
	if len(s.Columns) > 0 {
		shown = slices.DeleteFunc(shown, func(c column) bool { return !slices.Contains(s.Columns, c.name()) })
	}
	for _, c := range shown {
		t.Columns = append(t.Columns, page.Column{Title: c.title, Right: c.right})
	}
	for i := range programs {
		var cells []string
		for _, c := range shown {
			text, _ := c.cell(&programs[i])
			cells = append(cells, text)
		}
		t.Row(page.Texts(cells...)...)
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
