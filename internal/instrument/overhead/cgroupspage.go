package overhead

import (
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/term"
)

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
	m.Add("tasks", page.Each(rows, func(g *ledger.Cgroup) page.Cell {
		return known(g.Tasks, func(n int64) string { return page.Count(float64(n)) })
	}))
	m.Add("%CPU", page.Each(rows, func(g *ledger.Cgroup) page.Cell {
		return known(g.CPU, func(cpus float64) string { return page.Tenths(100 * cpus) })
	}))
	m.Add("memory", page.Each(rows, func(g *ledger.Cgroup) page.Cell {
		return known(g.Memory, func(n int64) string { return page.Memory(float64(n)) })
	}))
	m.Add("input/s", page.Each(rows, func(g *ledger.Cgroup) page.Cell { return known(g.Input, page.Memory) }))
	m.Add("output/s", page.Each(rows, func(g *ledger.Cgroup) page.Cell { return known(g.Output, page.Memory) }))
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

// known formats a value that may not have been read.
func known[N int64 | float64](v *N, show func(N) string) page.Cell {
	if v == nil {
		return page.Words(page.None)
	}
	return page.Words(show(*v))
}
