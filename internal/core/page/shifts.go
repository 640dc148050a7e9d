package page

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
)

// Shifts shows by how much targets differ from the one at a place, in quantities that
// were compared together; nil where nothing was.
func Shifts(t figure.Rows, how figure.Comparing) *Section {
	if t.At < 0 {
		return nil
	}
	names, at := t.Names, t.At
	table, comparisons, widened := Names("", Heading(names[at])), 0, 1.0
	table.Columns[1].Right = true
	for i, name := range names {
		if i != at {
			table.Columns = append(table.Columns, Column{Title: Heading(name), Right: true, Group: i + 1}, Column{Title: "vs " + Heading(names[at]), Right: true, Group: i + 1, Beside: Changes})
		}
	}
	for _, row := range t.Rows {
		base := row.Of[at]
		if base == nil || !base.Known() {
			continue
		}
		cells, compared := []Cell{Words(row.Name), Median(base)}, false
		for i, f := range row.Of {
			switch {
			case i == at:
			case f == nil:
				cells = append(cells, Words(None), Words(None))
			default:
				if f.Versus != nil {
					compared = true
					comparisons++
					widened = max(widened, f.Versus.Widened)
				}
				cells = append(cells, Median(f), Change(f))
			}
		}
		if compared {
			table.Row(cells...)
		}
	}
	if comparisons == 0 {
		return nil
	}
	s := &Section{Title: "compared with " + Heading(names[at]), Style: term.Bold, Table: table,
		Notes: []string{"median ± the larger half of its 95 % interval; " + Compared(names[at], WithinRound, how, comparisons, widened)}}
	s.Draw(Against("compared", t))
	return s
}
