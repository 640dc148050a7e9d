package report

import (
	"math"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// leastCPU is what rounds up to a tenth of a milli-CPU.
const leastCPU = 0.00005

// cpuByRole shows the roles that use some.
func cpuByRole(t *judge.OverheadTable, first bool) *section {
	s := titled(t, "CPU by role, milli-CPUs")
	m := byTarget(t)
	unknown := false
	show := func(role record.Role) []cell {
		return figures(t, func(c *judge.OverheadCell) cell {
			row := rowOf(c, role)
			switch {
			case row == nil || row.CPUKnown && math.Abs(row.CPU) < leastCPU:
				return plain(dot)
			case !row.CPUKnown && row.Processes == 0:
				return plain(dot)
			case !row.CPUKnown:
				unknown = true
				return plain("?")
			}
			return plain(milli(row.CPU))
		})
	}
	for _, role := range rolesIn(t) {
		m.onlyIf(heading(string(role)), show(role))
	}
	m.column("sum", figures(t, func(c *judge.OverheadCell) cell {
		sum, some := cpuOf(&c.Ledger)
		least := ""
		if some {
			least = "≥ "
		}
		return cell{head: least + milli(sum), tail: within(c.CPU), style: term.Bold}
	}))
	m.onlyIf("others", show(record.RoleOthers))
	m.column("node", figures(t, func(c *judge.OverheadCell) cell { return plain(milli(c.Ledger.NodeCPU)) }))
	s.table = m.spread()
	if first {
		s.notes = []string{"on average over the phase; 1000 are one CPU; node: all of its CPUs' busy time"}
	}
	if unknown {
		s.notes = append(s.notes, "? its CPU time could not be read")
	}
	return s
}
