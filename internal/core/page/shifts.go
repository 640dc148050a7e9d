package page

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
)

// Bounds explains a comparison that includes upper bounds.
const Bounds = "≤, ≥: an upper bound is compared by the bound only, with a verdict only if the bound proves it; two bounds are not compared"

// Shifts shows how much targets differ from the baseline target, in quantities that were
// compared together. It returns nil if nothing was compared.
func Shifts(t figure.Rows, how figure.Comparing) *Section {
	if t.At < 0 {
		return nil
	}
	names, at := t.Names, t.At
	table, comparisons, bounds := Names("", Heading(names[at])), 0, false
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
				}
				cells = append(cells, Median(f), Change(f))
				bounds, compared = bounds || f.AtMost || base.AtMost, compared || f.AtMost && base.AtMost // keep a row of two bounds, to show that they are not compared
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
		Notes: Filled("median ± the larger half of its 95 % interval; "+Compared(names[at], WithinRound, how, comparisons)+table.Dependent(), Opposed(t.Pairs()))}
	if bounds {
		s.Notes = append(s.Notes, Bounds)
	}
	s.Draw(Against("compared", t))
	return s
}
