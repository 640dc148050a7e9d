package bpflist

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// WriteJSON prints the view as one object, indented or on one line. Text is as the
// kernel has it; what a terminal would act on is written as "\u001b".
func (v *View) WriteJSON(w io.Writer, indented bool) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if indented {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write the programs as JSON: %w", err)
	}
	_, err := w.Write(term.CleanJSON(b.Bytes()))
	return err
}

var csvColumns = []string{
	"time", "interval_s", "id", "kind", "name", "tag", "owner", "attached", "holders", "pins", "runs_per_s", "mean_ns", "core_percent", "node_percent",
	"interval_misses", "runs", "run_time_ns", "misses", "memory_bytes", "map_ids", "shared_map_ids", "gone",
}

// WriteCSV prints a row for each program. Lists are separated by "; ", what is not
// known is empty.
func (v *View) WriteCSV(w io.Writer, heading bool) error {
	out := csv.NewWriter(w)
	if heading {
		if err := out.Write(csvColumns); err != nil {
			return err
		}
	}
	for i := range v.Programs {
		if err := out.Write(v.csvRow(&v.Programs[i])); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (v *View) csvRow(p *Program) []string {
	decimal := func(f float64, digits int) string { return strconv.FormatFloat(f, 'f', digits, 64) }
	whole := func(n uint64) string { return strconv.FormatUint(n, 10) }
	interval, rates := "", make([]string, 5)
	if r := p.Rate; r != nil {
		interval = decimal(v.Interval, 6)
		rates = []string{decimal(r.PerSec, 3), "", decimal(r.Core*100, 6), decimal(r.Node*100, 6), whole(r.Misses)}
		if r.Runs > 0 {
			rates[1] = decimal(r.Mean, 3)
		}
	}
	memory := ""
	if p.Memory >= 0 {
		memory = strconv.FormatInt(p.Memory, 10)
	}
	name := p.Full
	if name == "" {
		name = p.Name
	}
	row := []string{
		v.Time.UTC().Format(time.RFC3339Nano), interval, whole(uint64(p.ID)), p.Kind, cell(name), p.Tag, p.Owner,
		cell(strings.Join(p.Attached, "; ")), cell(strings.Join(p.Holders, "; ")), cell(strings.Join(p.Pins, "; ")),
	}
	row = append(row, rates...)
	return append(row, whole(p.Runs), whole(p.Time), whole(p.Misses), memory, ids(p.Maps, 1), ids(p.Maps, 2), strconv.FormatBool(p.Gone))
}

// ids are those of the maps that at least so many programs use.
func ids(maps []record.ProgramMap, users int) string {
	var out []string
	for _, a := range maps {
		if a.Shared >= users {
			out = append(out, strconv.FormatUint(uint64(a.ID), 10))
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
