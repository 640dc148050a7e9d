package report

import (
	"strings"

	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// shownPath is how much of a cgroup's path stands in a table; the list under
// --explain has all of it.
const shownPath = 32

// charge is a line of the table of charges: a kind of the sandboxes' own cgroups,
// or a group of others that a role of theirs is charged to. Of that the figures are
// of all who are in it, the whole node's where it is the root, and say nothing.
type charge struct {
	name   cell
	charge record.Charge
	count  int
	group  *ledger.GroupRow // nil: a group of others
	own    int64            // bytes that processes of the sandboxes have there
	ownOK  bool
	who    []record.Role
	path   string
}

// chargesOf are a target's lines: its own groups, then where else its roles are.
func chargesOf(c *judge.OverheadCell) (out []charge) {
	l := &c.Ledger
	for i := range l.Groups {
		g := &l.Groups[i]
		if g.Charge == record.ChargeShared {
			continue
		}
		line := charge{charge: g.Charge, count: g.Count, group: g, who: g.Roles}
		for _, p := range l.Places {
			if p.Charge == g.Charge {
				line.own, line.ownOK = line.own+p.Memory, true
			}
		}
		if len(g.Paths) > 0 {
			line.path = g.Paths[0]
		}
		out = append(out, line)
	}
	for _, p := range l.Places {
		if p.Charge == record.ChargeShared {
			out = append(out, charge{charge: p.Charge, count: p.Count, own: p.Memory, ownOK: true, who: []record.Role{p.Role}, path: p.Path})
		}
	}
	for i := range out {
		out[i].name = targetCell(c)
		if i > 0 {
			out[i].name.head = ""
		}
	}
	return out
}

// charges is which cgroup pays for what.
func charges(t *judge.OverheadTable, first bool) *section {
	s := titled(t, "where it is charged")
	m := &matrix{lead: []term.Column{{Title: "target"}, {Title: "charge"}}}
	var rows []charge
	for i := range t.Cells {
		rows = append(rows, chargesOf(&t.Cells[i])...)
	}
	if rows == nil {
		return nil
	}
	unlimited := false
	for i := range rows {
		r := &rows[i]
		unlimited = unlimited || r.charge == record.ChargeOverhead && r.group.Limit == 0
		m.rows = append(m.rows, matrixRow{lead: []cell{r.name, plain(heading(string(r.charge)))}})
	}
	own := func(show func(*ledger.GroupRow) cell) []cell {
		return each(rows, func(r *charge) cell {
			if r.group == nil {
				return plain(dot)
			}
			return show(r.group)
		})
	}
	m.column("groups", each(rows, func(r *charge) cell { return plain(count(float64(r.count))) }))
	m.column("sandboxes' MiB", each(rows, func(r *charge) cell {
		if !r.ownOK {
			return plain(dot)
		}
		return plain(mib(r.own))
	}))
	m.column("usage MiB", own(func(g *ledger.GroupRow) cell { return plain(mib(g.Usage)) }))
	m.column("peak", own(func(g *ledger.GroupRow) cell { return someMiB(g.Peak) }))
	m.column("limit", own(func(g *ledger.GroupRow) cell {
		if g.Limit > 0 {
			return plain(mib(g.Limit))
		}
		out := plain("none")
		if g.Charge == record.ChargeOverhead {
			out.style = term.Yellow
		}
		return out
	}))
	m.column("CPU m", own(func(g *ledger.GroupRow) cell { return plain(milli(g.CPU)) }))
	m.text("who", each(rows, func(r *charge) cell { return plain(rolesText(r.who)) }))
	m.text("path", each(rows, func(r *charge) cell {
		if r.path == "" {
			return plain(dot)
		}
		return plain(middle(term.Clean(r.path), shownPath))
	}))
	s.table = m.spread()
	if first {
		s.notes = []string{
			"pod: the group that was asked for, and below; overhead: another of the sandbox's own; shared: one that holds others too, by role: where its memory is charged",
			"sandboxes' MiB: what their processes there have (PSS), page cache left out, the engine's daemon not in it; usage is the group's own figure, page cache in it, and of a shared group others', so not shown; limit: of one group; path: of the first",
		}
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
