package page

import (
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
)

// Quantity is a column of a [Grid].
type Quantity struct {
	Title  string
	Of     string   // the quantity
	Labels []string // keys and values in turn, besides those of the row
	Show   func(float64) string
	Cell   func(row figure.Set) Cell // nil: the value alone
}

// Grid is a table of figures, with a row for each value of the labels and a column for each
// quantity, and the catalogue's legend. Rows that have none of the quantities are left out;
// nil if no row has.
func Grid(c *figure.Catalogue, all figure.Set, labels []string, columns []Quantity) *Section {
	rows := []figure.Set{all}
	for _, key := range labels {
		var parts []figure.Set
		for _, row := range rows {
			parts = append(parts, row.Parts(key)...)
		}
		rows = parts
	}
	rows = slices.DeleteFunc(rows, func(row figure.Set) bool {
		return row.Get(labels[len(labels)-1]) == "" || !slices.ContainsFunc(columns, func(q Quantity) bool { return row.Of(q.Of, q.Labels...).Quantity != "" })
	})
	if len(rows) == 0 {
		return nil
	}
	t := Names(append([]string{""}, labels[1:]...)...)
	above := make([]string, len(labels))
	for _, row := range rows {
		cells := make([]Cell, len(labels))
		for i, key := range labels {
			name := Heading(row.Get(key))
			cells[i].Head = name
			if i == len(labels)-1 {
				break
			}
			if cells[i].Label = name; above[i] == name {
				cells[i].Head = ""
			} else {
				above = append(slices.Clone(above[:i]), make([]string, len(labels)-i)...)
			}
			above[i] = name
		}
		t.Row(cells...)
	}
	var titles, is []string
	for i, q := range columns {
		t.Add(q.Title, Each(rows, func(row *figure.Set) Cell {
			if q.Cell != nil {
				return q.Cell(*row)
			}
			return Value(row.Of(q.Of, q.Labels...), q.Show)
		}))
		if i > 0 && q.Of == columns[i-1].Of {
			titles[len(titles)-1] += ", " + q.Title
			continue
		}
		titles, is = append(titles, q.Title), append(is, c.Quantity(q.Of).Is)
	}
	for i := range titles {
		titles[i] += ": " + is[i]
	}
	return &Section{Style: term.Bold, Table: t, Notes: titles}
}
