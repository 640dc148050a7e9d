package bpflist

import (
	"fmt"
	"io"
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

var mapColumns = []page.Column{{Title: "MAP", Right: true}, {Title: "KIND"}, {Title: "NAME"}, {Title: "ENTRIES", Right: true}, {Title: "MEMORY", Right: true},
	{Title: "USED BY", Right: true}, {Title: "INNER MAPS"}, {Title: "KEPT BY"}}

// writeText prints the tables of programs and maps, and the totals. The last column is
// wrapped at width; 0 disables wrapping.
func (v *View) writeText(w io.Writer, width int, colour bool, shown Selection) error {
	o := page.Options{Width: width, Colour: colour}
	var t page.Table
	switch {
	case len(v.Programs) > 0:
		t = shown.table(v.Programs)
		t.Line(0, "", term.Plain)
		v.head(&t, term.Bold)
	case v.loaded > 0:
		t.Line(0, fmt.Sprintf("%s %s loaded, but none matches the filter", page.Amount(v.loaded, "program"), are(v.loaded)), term.Plain)
	default:
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
		row(&a.Map, joined(a.Owner, few(a.Holders, 1), few(a.Pins, 1)))
	}
	fmt.Fprintln(w)
	return maps.Write(w, o)
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

// notes adds lines about the method, loaded and unloaded programs, and problems.
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
