package bpflist

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// unknown is shown for unknown values, none for absent ones.
const (
	unknown = "?"
	none    = "-"
)

var (
	programColumns = columns("ID>", "KIND", "NAME", "RUNS/s>", "AVG ns>", "CORE%>", "NODE%>", "MISSES>", "MEMORY>", "IN MAPS>", "MAPS", "OWNER", "ATTACHED", "PINS")
	mapColumns     = columns("MAP>", "KIND", "NAME", "ENTRIES>", "MEMORY>", "USED BY>", "INNER MAPS", "KEPT BY")
)

// columns returns the columns with these titles. A trailing ">" aligns a column to the
// right.
func columns(titles ...string) (out []page.Column) {
	for _, title := range titles {
		title, right := strings.CutSuffix(title, ">")
		out = append(out, page.Column{Title: title, Right: right})
	}
	return out
}

// writeText prints the tables of programs and maps, and the totals. The last column is
// wrapped at width; 0 disables wrapping.
func (v *View) writeText(w io.Writer, width int, colour bool) error {
	o := page.Options{Width: width, Colour: colour}
	t := page.Table{Columns: programColumns}
	switch {
	case len(v.Programs) > 0:
		for i := range v.Programs {
			t.Row(page.Texts(v.Programs[i].row()...)...)
		}
		t.Line(0, "", term.Plain)
		v.head(&t, term.Bold)
	case v.loaded > 0:
		t = page.Table{}
		t.Line(0, fmt.Sprintf("%s %s loaded, but none matches the filter", page.Amount(v.loaded, "program"), are(v.loaded)), term.Plain)
	default:
		t = page.Table{}
		t.Line(0, "no program is loaded", term.Plain)
	}
	v.notes(&t)
	if err := t.Write(w, o); err != nil || len(v.Maps)+len(v.Loose) == 0 {
		return err
	}
	maps := page.Table{Columns: mapColumns}
	if len(v.Loose) == 0 {
		maps.Columns = mapColumns[:len(mapColumns)-1]
	}
	row := func(a *record.ProgramMap, of string) {
		inner := ""
		if a.Inner > 0 {
			inner = fmt.Sprintf("%d, %s", a.Inner, size(a.InnerMemory))
		}
		cells := []string{whole(a.ID), a.Kind, a.Name, whole(a.Entries), size(a.Memory), whole(a.Shared), inner, of}
		maps.Row(page.Texts(cells[:len(maps.Columns)]...)...)
	}
	for i := range v.Maps {
		row(&v.Maps[i], "")
	}
	for i := range v.Loose {
		a := &v.Loose[i]
		whose := slices.DeleteFunc([]string{a.Owner, few(a.Holders, 1), few(a.Pins, 1)}, func(s string) bool { return s == "" })
		row(&a.Map, strings.Join(whose, ": "))
	}
	fmt.Fprintln(w)
	return maps.Write(w, o)
}

// lines returns what fits on a screen of that height: the totals, then the most
// expensive programs.
func (v *View) lines(height int) []string {
	var b strings.Builder // its writes never fail
	head := page.Table{}
	v.head(&head, term.Plain)
	v.notes(&head)
	_ = head.Write(&b, page.Options{})
	room := max(1, height-strings.Count(b.String(), "\n")-1)
	order := slices.Clone(v.Programs)
	slices.SortStableFunc(order, func(a, b Program) int { return cmp.Compare(b.core(), a.core()) })
	left := 0
	if len(order) > room {
		left = len(order) - max(1, room-1)
	}
	rows := page.Table{Columns: programColumns}
	for i := range order[:len(order)-left] {
		rows.Row(page.Texts(order[i].row()...)...)
	}
	if left > 0 {
		rows.Line(0, fmt.Sprintf("%d more", left), term.Plain)
	}
	_ = rows.Write(&b, page.Options{})
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	return lines[:min(len(lines), max(1, height))]
}

func (p *Program) core() float64 {
	if p.Rate == nil {
		return 0
	}
	return p.Rate.Core
}

// row returns a program's cells. A program without a name is shown by its tag.
func (p *Program) row() []string {
	name := cmp.Or(p.name(), "tag "+p.Tag)
	if p.Gone {
		name += " (went)"
	}
	rates := []string{none, none, none, none, whole(p.Misses)}
	if r := p.Rate; r != nil {
		rates = []string{count(r.PerSec), none, percent(r.Core), percent(r.Node), whole(r.Misses)}
		if r.Runs > 0 {
			rates[1] = count(r.Mean)
		}
	}
	memory, maps := p.maps()
	whose := slices.DeleteFunc([]string{p.Owner, few(p.Holders, 1)}, func(s string) bool { return s == "" })
	row := append([]string{whole(p.ID), p.Kind, name}, rates...)
	return append(row, size(p.Memory), memory, maps, strings.Join(whose, ": "), few(p.Attached, 2), few(p.Pins, 1))
}

// maps returns the memory of a program's maps and their ids. Shared maps are marked.
func (p *Program) maps() (memory, words string) {
	sum, shared, known := int64(0), "", true
	var ids []string
	for _, a := range p.Maps {
		id := whole(a.ID)
		known = known && a.Memory >= 0 && a.InnerMemory >= 0
		sum += max(0, a.Memory) + max(0, a.InnerMemory)
		if a.Shared > 1 {
			shared = "*"
			id += "*"
		}
		ids = append(ids, id)
	}
	if len(ids) > 4 {
		ids = append(ids[:4], fmt.Sprintf("+%d", len(ids)-4))
	}
	if !known {
		return unknown, strings.Join(ids, " ")
	}
	return size(sum) + shared, strings.Join(ids, " ")
}

// few joins the first items of a list and adds the number of omitted ones.
func few(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s, +%d", strings.Join(list[:most], ", "), len(list)-most)
}

// head adds the totals: CPU share, if known, and memory.
func (v *View) head(t *page.Table, style term.Style) {
	all := &v.Total
	if r := all.Rate; r != nil {
		t.Line(0, fmt.Sprintf("%s %% of a core, which is %s %% of the node's %d; %s runs/s", percent(r.Core), percent(r.Node), v.CPUs, count(r.PerSec)), style)
	}
	t.Line(0, all.words(), style)
}

func (t *Total) words() string {
	line := page.Amount(t.Programs, "program")
	if t.Maps > 0 {
		line += ", " + page.Amount(t.Maps, "map")
	}
	if t.Shared > 0 {
		line += fmt.Sprintf(" (* %d shared)", t.Shared)
	}
	line += fmt.Sprintf(", together %s with each map once", size(t.Memory))
	if t.Unknown > 0 {
		line += fmt.Sprintf(", without %d of unknown memory", t.Unknown)
	}
	return line
}

// are returns "is" or "are" for a number of things.
func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// notes adds how the figures were measured and what is missing.
func (v *View) notes(t *page.Table) {
	switch {
	case !v.Counted:
		t.Line(0, "one reading, without rates; misses are since loading, as far as statistics were on", term.Dim)
	case v.Interval > 0:
		text := fmt.Sprintf("over %.2f s; the time of a tail call counts for its caller; statistics cost about 20 ns per run", v.Interval)
		if v.Before {
			text += ", and were on before"
		}
		t.Line(0, text, term.Dim)
	}
	if v.Came+v.Went+v.Passed > 0 {
		text := fmt.Sprintf("programs loaded in the interval: %d, unloaded: %d", v.Came, v.Went)
		if v.Passed > 0 {
			text += fmt.Sprintf(", loaded and unloaded within it: at least %d of all programs, by skipped ids", v.Passed)
		}
		t.Line(0, text, term.Yellow)
	}
	for _, problem := range v.Problems {
		t.Line(0, problem, term.Yellow)
	}
}

// count formats a number, with one decimal if it is small.
func count(v float64) string {
	if v > 0 && v < 99.95 {
		return decimal(v, 1)
	}
	return decimal(v, 0)
}

// percent formats a share of 1 as percent with two decimals.
func percent(v float64) string {
	if v > 0 && v < 0.0001 {
		return "<0.01"
	}
	return decimal(v*100, 2)
}

// size formats bytes in powers of 1024.
func size(n int64) string {
	switch {
	case n < 0:
		return unknown
	case n < 1024:
		return strconv.FormatInt(n, 10)
	}
	v, unit := float64(n)/1024, 0
	for ; v >= 1023.95 && unit < 3; unit++ {
		v /= 1024
	}
	return decimal(v, 1) + "KMGT"[unit:unit+1]
}
