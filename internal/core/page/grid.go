package page

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
)

// Quantity is a column of a [Grid], or one for each value of a label.
type Quantity struct {
	Of     string // the quantity
	Titles []string
	Key    string   // of the label
	Values []string // of the label, one for each title
	Show   func(float64) string
	Cell   func(row figure.Set) Cell // nil: the value alone
}

// Grid is a table of figures, with a row for each value of the labels and a column for each
// quantity, and the catalogue's legend. Rows that have none of the quantities are left out;
// nil if no row has.
func Grid(c *figure.Catalogue, all figure.Set, labels []string, columns []Quantity) *Section {
	rows := slices.DeleteFunc(all.Parts(labels...), func(row figure.Set) bool {
		return !slices.ContainsFunc(columns, func(q Quantity) bool { return row.Of(q.Of).Quantity != "" })
	})
	if len(rows) == 0 {
		return nil
	}
	s := &Section{Style: term.Bold, Table: Names(append([]string{""}, labels[1:]...)...)}
	for r, row := range rows {
		cells, again := make([]Cell, len(labels)), r > 0 // said in the row above
		for i, key := range labels {
			name := Heading(row.Get(key))
			cells[i] = Cell{Head: name, Label: name}
			if again = again && i < len(labels)-1 && row.Get(key) == rows[r-1].Get(key); again {
				cells[i].Head = ""
			}
		}
		s.Table.Row(cells...)
	}
	for _, q := range columns {
		for i, title := range q.Titles {
			s.Table.Add(title, Each(rows, func(row *figure.Set) Cell {
				switch {
				case q.Cell != nil:
					return q.Cell(*row)
				case q.Key != "":
					return Value(row.Of(q.Of, q.Key, q.Values[i]), q.Show)
				}
				return Value(row.Of(q.Of), q.Show)
			}))
		}
		s.Notes = append(s.Notes, strings.Join(q.Titles, ", ")+": "+c.Quantity(q.Of).Is)
	}
	return s
}
