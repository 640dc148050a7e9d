package overhead

import (
	"math"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// leastCPU is the smallest value that rounds to 0.1 milli-CPU.
const leastCPU = 0.00005

// cpuByRole shows the roles that use CPU time.
func cpuByRole(v *Judgement, t *Table, first bool) *page.Section {
	unknown := false
	show := func(role record.Role) page.Quantity {
		return page.Quantity{Of: "role-processes", Titles: []string{page.Heading(string(role))}, Cell: func(row figure.Set) page.Cell {
			cpu := row.Of("role-cpu", "role", string(role))
			switch {
			case !cpu.Known() && row.Of("role-processes", "role", string(role)).Value > 0:
				unknown = true
				return page.Words("?")
			case math.Abs(cpu.Value) < leastCPU:
				return page.Words(page.Dot)
			}
			return page.Words(page.Milli(cpu.Value))
		}}
	}
	var columns []page.Quantity
	for _, role := range rolesIn(t) {
		columns = append(columns, show(role))
	}
	columns = append(columns, page.Quantity{Of: "cpu", Titles: []string{"sum"}, Beside: page.Estimates, Cell: func(row figure.Set) page.Cell {
		c := t.of(row.Get("target"))
		sum, some := c.Ledger.CPU()
		least := ""
		if some {
			least = "≥ "
		}
		return page.Cell{Head: least + page.Milli(sum), Tail: within(row.Of("cpu")), Style: term.Bold, Figure: row.Of("cpu")}
	}}, show(record.RoleOthers), page.Quantity{Of: "node-busy", Titles: []string{"node"}, Show: page.Milli})
	s := t.grid("CPU by role, milli-CPUs", false, []string{"target"}, columns...)
	if s == nil {
		return nil
	}
	if first {
		s.Draw(sumsChart(v, "CPU", "cpu"))
	}
	var notes lines
	notes.addIf(first, "averages over the phase; 1000 is one CPU; node: busy time of all its CPUs")
	notes.addIf(unknown, "? CPU time could not be read")
	s.Notes = notes
	return s
}
