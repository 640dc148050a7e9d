package overhead

import (
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/term"
)

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
