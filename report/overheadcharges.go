package report

import (
	"strings"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/judge"
	"github.com/tare-bench/tare/ledger"
	"github.com/tare-bench/tare/record"
)

// shownPath is how much of a cgroup's path stands in a table; the list under
// --explain has all of it.
const shownPath = 32

// charges is which cgroup pays for what.
func charges(t *judge.OverheadTable, first bool) *section {
	s := titled(t, "where it is charged")
	m := &matrix{lead: []term.Column{{Title: "target"}, {Title: "charge"}}}
	var rows []ledger.GroupRow
	unlimited := false
	for i := range t.Cells {
		c := &t.Cells[i]
		for j := range c.Ledger.Groups {
			g := &c.Ledger.Groups[j]
			name := targetCell(c)
			if j > 0 {
				name.head = ""
			}
			unlimited = unlimited || g.Charge == record.ChargeOverhead && g.Limit == 0
			m.rows = append(m.rows, matrixRow{lead: []cell{name, plain(heading(string(g.Charge)))}})
			rows = append(rows, *g)
		}
	}
	if rows == nil {
		return nil
	}
	m.column("groups", each(rows, func(g *ledger.GroupRow) cell { return plain(count(float64(g.Count))) }))
	m.column("usage MiB", each(rows, func(g *ledger.GroupRow) cell { return plain(mib(g.Usage)) }))
	m.column("peak", each(rows, func(g *ledger.GroupRow) cell { return someMiB(g.Peak) }))
	m.column("limit", each(rows, func(g *ledger.GroupRow) cell {
		if g.Limit > 0 {
			return plain(mib(g.Limit))
		}
		out := plain("none")
		if g.Charge == record.ChargeOverhead {
			out.style = term.Yellow
		}
		return out
	}))
	m.column("CPU m", each(rows, func(g *ledger.GroupRow) cell { return plain(milli(g.CPU)) }))
	m.text("who", each(rows, func(g *ledger.GroupRow) cell { return plain(rolesText(g.Roles)) }))
	m.text("path", each(rows, func(g *ledger.GroupRow) cell {
		if len(g.Paths) == 0 {
			return plain(dot)
		}
		return plain(middle(term.Clean(g.Paths[0]), shownPath))
	}))
	s.table = m.spread()
	if first {
		s.notes = []string{"pod: the group that was asked for, and below; overhead: another of the sandbox's own; shared: holds others too, all of whom are in its usage. Usage has page cache in it; limit: of one group; path: of the first"}
	}
	if unlimited {
		s.notes = append(s.notes, "an overhead group without a limit can grow until the node has no memory left")
	}
	return s
}

func rolesText(roles []record.Role) string {
	if len(roles) == 0 {
		return dot
	}
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = heading(string(r))
	}
	return strings.Join(names, " ")
}

// engineSays is what the engine says, beside what is.
func engineSays(t *judge.OverheadTable, first bool) *section {
	m := &matrix{lead: []term.Column{{Title: "target"}, {Title: "says"}}}
	var rows []ledger.EngineRow
	for i := range t.Cells {
		c := &t.Cells[i]
		for j := range c.Ledger.Engine {
			e := &c.Ledger.Engine[j]
			name := targetCell(c)
			if j > 0 {
				name.head = ""
			}
			m.rows = append(m.rows, matrixRow{lead: []cell{name, plain(heading(e.Source))}})
			rows = append(rows, *e)
		}
	}
	if rows == nil {
		return nil
	}
	s := titled(t, "what the engine says of it")
	m.column("memory MiB", each(rows, func(e *ledger.EngineRow) cell {
		if e.Reported < 0 {
			return plain(dot)
		}
		return plain(mib(e.Reported))
	}))
	m.column("truth MiB", each(rows, func(e *ledger.EngineRow) cell { return plain(mib(e.Truth)) }))
	m.column("difference", each(rows, func(e *ledger.EngineRow) cell {
		if e.Reported < 0 {
			return plain(dot)
		}
		return difference(float64(e.Reported), float64(e.Truth), 1<<20, growth)
	}))
	m.column("CPU m", each(rows, func(e *ledger.EngineRow) cell {
		if e.CPU < 0 {
			return plain(dot)
		}
		return plain(milli(e.CPU))
	}))
	m.column("truth m", each(rows, func(e *ledger.EngineRow) cell { return plain(milli(e.CPUTruth)) }))
	m.column("difference", each(rows, func(e *ledger.EngineRow) cell {
		if e.CPU < 0 {
			return plain(dot)
		}
		return difference(e.CPU, e.CPUTruth, 0.001, milli)
	}))
	s.table = m.spread()
	if first {
		s.notes = []string{"truth: what the sandboxes' own roles have, page cache left out; the engine's daemon is not in it"}
	}
	return s
}
