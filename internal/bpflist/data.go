package bpflist

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// csvColumns are what a row of CSV has of a program.
var csvColumns = []struct {
	title string
	text  func(v *View, p *Program) string
}{
	{"time", func(v *View, _ *Program) string { return v.Time.UTC().Format(time.RFC3339Nano) }},
	{"interval_s", func(v *View, p *Program) string { return where(p.Rate != nil, decimal(v.Interval, 6)) }},
	{"id", func(_ *View, p *Program) string { return whole(p.ID) }},
	{"kind", func(_ *View, p *Program) string { return p.Kind }},
	{"name", func(_ *View, p *Program) string { return cell(p.name()) }},
	{"tag", func(_ *View, p *Program) string { return p.Tag }},
	{"owner", func(_ *View, p *Program) string { return p.Owner }},
	{"attached", func(_ *View, p *Program) string { return cell(strings.Join(p.Attached, "; ")) }},
	{"holders", func(_ *View, p *Program) string { return cell(strings.Join(p.Holders, "; ")) }},
	{"pins", func(_ *View, p *Program) string { return cell(strings.Join(p.Pins, "; ")) }},
	{"runs_per_s", rated(func(r *Rate) string { return decimal(r.PerSec, 3) })},
	{"mean_ns", rated(func(r *Rate) string { return where(r.Runs > 0, decimal(r.Mean, 3)) })},
	{"core_percent", rated(func(r *Rate) string { return decimal(r.Core*100, 6) })},
	{"node_percent", rated(func(r *Rate) string { return decimal(r.Node*100, 6) })},
	{"interval_misses", rated(func(r *Rate) string { return whole(r.Misses) })},
	{"runs", func(_ *View, p *Program) string { return whole(p.Runs) }},
	{"run_time_ns", func(_ *View, p *Program) string { return whole(p.Time) }},
	{"misses", func(_ *View, p *Program) string { return whole(p.Misses) }},
	{"memory_bytes", func(_ *View, p *Program) string { return where(p.Memory >= 0, whole(p.Memory)) }},
	{"map_ids", func(_ *View, p *Program) string { return ids(p.Maps, 1) }},
	{"shared_map_ids", func(_ *View, p *Program) string { return ids(p.Maps, 2) }},
	{"gone", func(_ *View, p *Program) string { return strconv.FormatBool(p.Gone) }},
}

// writeCSV prints a row for each program. Lists are separated by "; ", what is not
// known is empty.
func (v *View) writeCSV(w io.Writer, heading bool) error {
	out := csv.NewWriter(w)
	row := make([]string, len(csvColumns))
	if heading {
		for i, c := range csvColumns {
			row[i] = c.title
		}
		_ = out.Write(row) // Error tells
	}
	for i := range v.Programs {
		for j, c := range csvColumns {
			row[j] = c.text(v, &v.Programs[i])
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// name is all of a program's name that is known, "" where it has none.
func (p *Program) name() string { return cmp.Or(p.Full, p.Name) }

// rated is a text of the program's rate, "" where it has none.
func rated(text func(*Rate) string) func(*View, *Program) string {
	return func(_ *View, p *Program) string {
		if p.Rate == nil {
			return ""
		}
		return text(p.Rate)
	}
}

// where is a text of what is known, else "".
func where(known bool, text string) string {
	if !known {
		return ""
	}
	return text
}

func decimal(f float64, digits int) string { return strconv.FormatFloat(f, 'f', digits, 64) }

func whole[T uint64 | uint32 | int64 | int](n T) string { return fmt.Sprint(n) }

// ids are those of the maps that at least so many programs use.
func ids(maps []record.ProgramMap, users int) string {
	var out []string
	for _, a := range maps {
		if a.Shared >= users {
			out = append(out, whole(a.ID))
		}
	}
	return strings.Join(out, "; ")
}

// cell is foreign text that neither a terminal nor a spreadsheet acts on: what would
// be a formula begins with an apostrophe.
func cell(s string) string {
	s = term.Clean(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}
