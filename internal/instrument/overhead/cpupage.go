package overhead

import (
	"math"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// leastCPU is what rounds up to a tenth of a milli-CPU.
const leastCPU = 0.00005

// cpuByRole shows the roles that use some.
func cpuByRole(v *Judgement, t *Table, first bool) *page.Section {
	s := titled(t, "CPU by role, milli-CPUs")
	m := byTarget(t)
	unknown := false
	show := func(role record.Role) []page.Cell {
		return figures(t, func(c *Cell) page.Cell {
			row := rowOf(&c.Ledger, role)
			switch {
			case row.CPUKnown && math.Abs(row.CPU) < leastCPU:
				return page.Words(page.Dot)
			case !row.CPUKnown && row.Processes == 0:
				return page.Words(page.Dot)
			case !row.CPUKnown:
				unknown = true
				return page.Words("?")
			}
			return page.Words(page.Milli(row.CPU))
		})
	}
	for _, role := range rolesIn(t) {
		m.AddIf(page.Heading(string(role)), show(role))
	}
	m.Add("sum", figures(t, func(c *Cell) page.Cell {
		sum, some := c.Ledger.CPU()
		least := ""
		if some {
			least = "≥ "
		}
		return page.Cell{Head: least + page.Milli(sum), Tail: within(&c.CPU), Style: term.Bold, Figure: &c.CPU}
	}))
	m.Draw(page.Estimates)
	m.AddIf("others", show(record.RoleOthers))
	m.Add("node", figures(t, func(c *Cell) page.Cell { return page.Words(page.Milli(c.Ledger.NodeCPU)) }))
	s.Table = m
	if first {
		s.Draw(sumsChart(v, "CPU", func(c *Cell) *figure.Figure { return &c.CPU }))
		s.Notes = []string{"on average over the phase; 1000 are one CPU; node: all of its CPUs' busy time"}
	}
	if unknown {
		s.Notes = append(s.Notes, "? its CPU time could not be read")
	}
	return s
}
