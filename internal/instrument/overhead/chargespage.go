package overhead

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// shownPath is the maximum length of a path in the table. The list under --details shows
// the full path.
const shownPath = 32

// charge is a line of the table of charges. It stands for one kind of the sandboxes' own
// cgroups, or for a shared group that is charged for one of their roles. A shared group
// has no figures of its own here: they would cover all its members, and the whole node
// for the root.
type charge struct {
	*ledger.GroupRow
	name  page.Cell
	own   int64 // bytes of the sandboxes' processes in it
	ownOK bool
}

// chargesOf returns the lines of a target: its own groups, then shared ones.
func chargesOf(c *Cell) (out []charge) {
	l := &c.Ledger
	for g := range ledger.Each(l.Groups) {
		if g.Charge == record.ChargeShared {
			continue
		}
		line := charge{GroupRow: g}
		for _, p := range l.Places {
			if p.Charge == g.Charge {
				line.own, line.ownOK = line.own+p.Memory, true
			}
		}
		out = append(out, line)
	}
	for _, p := range l.Places {
		if p.Charge == record.ChargeShared {
			g := &ledger.GroupRow{Charge: p.Charge, Count: p.Count, Roles: []record.Role{p.Role}, Paths: []string{p.Path}}
			out = append(out, charge{GroupRow: g, own: p.Memory, ownOK: true})
		}
	}
	for i, name := 0, targetCell(c); i < len(out); i++ {
		out[i].name, name.Head = name, ""
	}
	return out
}

// charges shows which cgroup is charged.
func charges(t *Table, first bool) *page.Section {
	s := titled(t, "charged cgroups")
	m := page.Names("target", "charge")
	var rows []charge
	for c := range ledger.Each(t.Cells) {
		rows = append(rows, chargesOf(c)...)
	}
	if rows == nil {
		return nil
	}
	unlimited := false
	for r := range ledger.Each(rows) {
		unlimited = unlimited || r.Charge == record.ChargeOverhead && r.Limit == 0
		m.Row(r.name, page.Words(page.Heading(string(r.Charge))))
	}
	own := func(show func(*ledger.GroupRow) page.Cell) []page.Cell {
		return page.Each(rows, func(r *charge) page.Cell {
			if r.Charge == record.ChargeShared {
				return page.Words(page.Dot)
			}
			return show(r.GroupRow)
		})
	}
	m.Add("groups", page.Each(rows, func(r *charge) page.Cell { return page.Words(page.Count(float64(r.Count))) }))
	m.Add("sandboxes' MiB", page.Each(rows, func(r *charge) page.Cell { return orDot(r.ownOK, page.MiB(r.own)) }))
	m.Add("usage MiB", own(func(g *ledger.GroupRow) page.Cell { return page.Words(page.MiB(g.Usage)) }))
	m.Add("peak", own(func(g *ledger.GroupRow) page.Cell { return someMiB(int64(g.Over.Of("group-peak").Value)) }))
	m.Add("limit", own(func(g *ledger.GroupRow) page.Cell {
		if g.Limit > 0 {
			return page.Words(page.MiB(g.Limit))
		}
		out := page.Words("none")
		if g.Charge == record.ChargeOverhead {
			out.Style = term.Yellow
		}
		return out
	}))
	m.Add("CPU m", own(func(g *ledger.GroupRow) page.Cell { return page.Words(page.Milli(g.Over.Of("group-cpu").Value)) }))
	m.AddText("who", page.Each(rows, func(r *charge) page.Cell { return page.Words(rolesText(r.Roles)) }))
	m.AddText("path", page.Each(rows, func(r *charge) page.Cell { return page.Words(page.Middle(term.Clean(r.Paths[0]), shownPath)) }))
	var notes lines
	notes.addIf(first,
		"pod: the requested group and its descendants; overhead: another group of the sandbox; shared: a group with other members, by charged role",
		"sandboxes' MiB: PSS of their processes in the group, without page cache and the engine's daemon; usage: the group's own counter, including page cache, not shown for shared groups; limit: of one group; path: of the first")
	notes.addIf(unlimited, "an overhead group without a limit can grow until the node has no memory left")
	s.Table, s.Notes = m, notes
	return s
}

func rolesText(roles []record.Role) string {
	if len(roles) == 0 {
		return page.Dot
	}
	return headings(roles, " ")
}

// engineSays compares the engine's reports with the ledger.
func engineSays(t *Table, first bool) *page.Section {
	off := func(quantity string, least float64, show func(float64) string) page.Quantity {
		return page.Quantity{Of: quantity, Titles: []string{"difference"}, Cell: func(row figure.Set) page.Cell {
			reported := row.Of(quantity, "of", "reported")
			if !reported.Known() {
				return page.Words(page.None)
			}
			return difference(reported.Value, row.Of(quantity, "of", "observed").Value, least, show)
		}}
	}
	of := []string{"reported", "observed"}
	return t.grid("engine-reported usage", first, []string{"target", "source"},
		page.Quantity{Of: "engine-memory", Titles: []string{"memory MiB", "truth MiB"}, Key: "of", Values: of, Show: page.MiB[float64]}, off("engine-memory", 1<<20, page.Growth),
		page.Quantity{Of: "engine-cpu", Titles: []string{"CPU m", "truth m"}, Key: "of", Values: of, Show: page.Milli}, off("engine-cpu", 0.001, page.Milli))
}

// cgroupUsage are the columns of a cgroup, and their figures.
var cgroupUsage = []struct {
	usage, title, quantity, of string
	show                       func(float64) string
}{
	{"tasks", "tasks", "cgroup-tasks", "", page.Count},
	{"cpu", "%CPU", "cgroup-cpu", "", func(cpus float64) string { return page.Tenths(100 * cpus) }},
	{"memory", "memory", "cgroup-memory", "", page.Memory},
	{"input", "input/s", "cgroup-io", "input", page.Memory},
	{"output", "output/s", "cgroup-io", "output", page.Memory},
}

// cgroups lists the cgroups of every target as systemd-cgtop does.
func cgroups(v *Judgement, t *Table, first bool) *page.Section {
	var rows []ledger.Cgroup
	m := page.Names("target", "cgroup")
	for i := range t.Cells {
		name := targetCell(&t.Cells[i])
		for _, g := range t.Cells[i].Ledger.Cgroups {
			rows = append(rows, g)
			m.Row(name, page.Words(page.Middle(term.Clean(around(g.Path, v.Record.Header.RunID)), shownCgroup)))
			name.Head = ""
		}
	}
	if rows == nil {
		return nil
	}
	s := titled(t, "cgroups, as systemd-cgtop shows them")
	m.AddIf("groups", page.Each(rows, func(g *ledger.Cgroup) page.Cell { return orDot(g.Count > 1, page.Count(float64(g.Count))) }))
	for _, u := range cgroupUsage {
		m.Add(u.title, page.Each(rows, func(g *ledger.Cgroup) page.Cell {
			if v, known := g.Usage[u.usage]; known {
				return page.Words(u.show(v))
			}
			return page.Words(page.None)
		}))
	}
	m.AddText("who", page.Each(rows, func(g *ledger.Cgroup) page.Cell {
		if g.Around {
			return page.Words("around")
		}
		return page.Words(page.Heading(string(g.Charge)) + ": " + rolesText(g.Roles))
	}))
	s.Table = m
	if first {
		s.Notes = []string{
			"each group includes its descendants; values are from the end of the phase, or averages over it; 100 %CPU is one CPU; groups of several sandboxes with the same roles share a row, with the path of the first; around: the parent of the sandboxes' groups, which may contain others",
			page.None + " the controller is missing, was not read at both ends, or accounts nothing: newer kernels (seen on 6.18) account I/O on cgroup v1 only if some disk has a limit; cgroup v1 does not account writes through the page cache",
		}
	}
	return s
}

// shownCgroup is the maximum length of a path in the table.
const shownCgroup = 36
