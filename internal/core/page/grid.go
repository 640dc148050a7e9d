package page

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
)

// Quantity is one column of a [Grid], or one column for each value of a label.
type Quantity struct {
	Of     string // name of the quantity
	Titles []string
	Key    string   // key of the label
	Values []string // values of the label, one for each title
	Show   func(float64) string
	Draw   func(*figure.Figure) Cell // nil: see [Value]
	Cell   func(row figure.Set) Cell // from several figures; nil: from the one figure
	Beside *Beside
}

// Grid is a table of figures with the catalogue's legend. It has a row for each value of the
// labels and a column for each quantity. It leaves out rows without any of the quantities and
// unknown columns. It returns nil if nothing is left.
func Grid(c *figure.Catalogue, all figure.Set, labels []string, columns []Quantity) *Section {
	rows := slices.DeleteFunc(all.Parts(labels...), func(row figure.Set) bool {
		return !slices.ContainsFunc(columns, func(q Quantity) bool { return row.Of(q.Of).Quantity != "" })
	})
	if len(rows) == 0 {
		return nil
	}
	s := &Section{Style: term.Bold, Table: Names(labels...)}
	for r, row := range rows {
		cells, again := make([]Cell, len(labels)), r > 0 // same as in the row above
		for i, key := range labels {
			name := Heading(row.Get(key))
			if cells[i] = (Cell{Head: name, Label: name}); row[0].Failed > 0 {
				cells[i].Style = term.Red
			}
			if again = again && i < len(labels)-1 && row.Get(key) == rows[r-1].Get(key); again {
				cells[i].Head = ""
			}
		}
		s.Table.Row(cells...)
	}
	said := map[string]bool{}
	for _, q := range columns {
		for i, title := range q.Titles {
			n := len(s.Table.Columns)
			s.Table.AddUnless(title, Each(rows, func(row *figure.Set) Cell {
				f := row.Of(q.Of)
				if q.Key != "" {
					f = row.Of(q.Of, q.Key, q.Values[i])
				}
				switch {
				case q.Cell != nil:
					return q.Cell(*row)
				case q.Draw != nil:
					return q.Draw(f)
				}
				return Value(f, q.Show)
			}))
			if len(s.Table.Columns) > n {
				s.Table.Draw(q.Beside)
			}
		}
		if !said[q.Of] {
			said[q.Of] = true
			s.Notes = append(s.Notes, strings.Join(q.Titles, ", ")+": "+c.Quantity(q.Of).Is)
		}
	}
	if len(s.Table.Columns) == len(labels) {
		return nil
	}
	return s
}
