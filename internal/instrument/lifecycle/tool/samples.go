package tool

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/subject/setting"
)

// Units maps the units of [Samples] to ns.
var Units = map[string]float64{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}

// Samples describes single times in a text: one number per line, or a column of a
// table.
type Samples struct {
	Unit   string // one of [Units]
	Column string // name or number from 1; "": the only column
	Done   string // description of the end of each time
}

// AddSamples adds the times in a text. Values that are not numbers are left out and
// reported.
func (g *Imported) AddSamples(file string, text []byte, told Told, s Samples) error {
	rows, lines, err := table(strings.TrimPrefix(string(text), "\ufeff"))
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	for i, row := range rows {
		if n := len(row) - 1; n > 0 && row[n] == s.Unit {
			rows[i] = row[:n]
		}
	}
	var names []string
	if slices.ContainsFunc(rows[0], func(cell string) bool { _, err := s.time(cell); return err != nil }) {
		names, rows, lines = rows[0], rows[1:], lines[1:]
	}
	if len(rows) == 0 {
		return fmt.Errorf("read %s: it has no times", file)
	}
	at := s.column(names, rows)
	if at < 0 {
		return fmt.Errorf("read %s: --column %q: choose one of %s", file, s.Column, cmp.Or(strings.Join(names, ", "), "the columns by its number, from 1"))
	}
	f := found{tool: "samples", unknowable: "a list of times does not record failed operations"}
	o := output{line: 1, op: cmp.Or(told.Op, setting.Run), lanes: 1, command: "samples", means: cmp.Or(s.Done, "a time in a list") + ", as the importer says"}
	told.Op = ""
	for i, row := range rows {
		err := errors.New("the column is missing")
		if at < len(row) {
			ns, notNumber := s.time(row[at])
			b, wrong := single(ns)
			if err = cmp.Or(notNumber, wrong); err == nil && len(o.batches) < maxOperations {
				o.batches = append(o.batches, b)
			}
		}
		if err != nil {
			f.bad = append(f.bad, fmt.Errorf("line %d: %w", lines[i], err))
		}
	}
	if more := len(rows) - len(f.bad) - maxOperations; more > 0 {
		f.left = append(f.left, fmt.Sprintf("%d times beyond the first %d", more, maxOperations))
	}
	if o.batches != nil {
		f.outputs = append(f.outputs, o)
	}
	g.add(file, f, told)
	return nil
}

// column returns the index of the requested column, or −1 if there is none.
func (s *Samples) column(names []string, rows [][]string) int {
	if at := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, s.Column) }); at >= 0 {
		return at
	}
	n, err := strconv.Atoi(s.Column)
	switch {
	case err == nil && n > 0 && n <= max(len(names), len(rows[0])):
		return n - 1
	case s.Column == "" && len(names) <= 1 && !slices.ContainsFunc(rows, func(row []string) bool { return len(row) > 1 }):
		return 0
	}
	return -1
}

// time parses a cell into ns.
func (s *Samples) time(cell string) (ns float64, err error) {
	number := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(cell), s.Unit))
	v, err := strconv.ParseFloat(strings.Replace(number, ",", ".", 1), 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number", cell)
	}
	return v * Units[s.Unit], nil
}

// table splits a text into rows and returns their line numbers. Columns are separated
// by tabs, semicolons, commas or spaces. Empty lines and comments are skipped.
func table(text string) (rows [][]string, lines []int, err error) {
	r := csv.NewReader(strings.NewReader(text))
	r.LazyQuotes, r.TrimLeadingSpace, r.FieldsPerRecord, r.Comment, r.Comma = true, true, -1, '#', ' '
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		for _, c := range ",;\t" {
			if strings.ContainsRune(line, c) {
				r.Comma = c
			}
		}
		break
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		if n := len(row) - 1; n > 0 && row[n] == "" { // after a trailing space
			row = row[:n]
		}
		line, _ := r.FieldPos(0)
		rows, lines = append(rows, row), append(lines, line)
	}
	if rows == nil {
		return nil, nil, errors.New("it has no times")
	}
	return rows, lines, nil
}
