package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// byTarget is a table with a row a target.
func byTarget(t *judge.OverheadTable) *matrix {
	m := &matrix{lead: []term.Column{{Title: "target"}}}
	for i := range t.Cells {
		m.rows = append(m.rows, matrixRow{lead: []cell{targetCell(&t.Cells[i])}})
	}
	return m
}

// figures shows nothing of a target that has no round with figures.
func figures(t *judge.OverheadTable, show func(*judge.OverheadCell) cell) []cell {
	return each(t.Cells, func(c *judge.OverheadCell) cell {
		if c.Rounds == 0 {
			return plain(dot)
		}
		return show(c)
	})
}

// rolesIn are the roles that some target has, in the order of rows, and those
// that this version does not know behind them. The page cache and all other
// processes of the node are no part of a target's sum.
func rolesIn(t *judge.OverheadTable) []record.Role {
	var all, present []record.Role
	all = append(all, ledger.Roles...)
	for i := range t.Cells {
		for _, row := range t.Cells[i].Ledger.Rows {
			if !slices.Contains(all, row.Role) {
				all = append(all, row.Role)
			}
			present = append(present, row.Role)
		}
	}
	return slices.DeleteFunc(all, func(r record.Role) bool {
		return r == record.RoleCache || r == record.RoleOthers || r == record.RoleKernelNode || !slices.Contains(present, r)
	})
}

func rowOf(c *judge.OverheadCell, role record.Role) *ledger.Row {
	i := slices.IndexFunc(c.Ledger.Rows, func(r ledger.Row) bool { return r.Role == role })
	if i < 0 {
		return nil
	}
	return &c.Ledger.Rows[i]
}

// memoryByRole is the main table: whose memory it is, and whether the books
// close.
func memoryByRole(v *judge.Overhead, t *judge.OverheadTable, first bool) *section {
	s := titled(t, "memory by role, MiB ("+roundsIn(t)+")")
	m := byTarget(t)
	for _, role := range rolesIn(t) {
		m.onlyIf(heading(string(role)), figures(t, func(c *judge.OverheadCell) cell {
			row := rowOf(c, role)
			if row == nil || row.Memory.Sum() == 0 {
				return plain(dot)
			}
			return plain(mib(row.Memory.Sum()))
		}))
	}
	incomplete := false
	m.column("sum", figures(t, func(c *judge.OverheadCell) cell {
		out := cell{head: mib(c.Ledger.Sum), tail: within(c.Sum), style: term.Bold}
		if !c.Ledger.Complete {
			incomplete, out.head = true, "≥ "+out.head
		}
		return out
	}))
	m.column("residual", figures(t, func(c *judge.OverheadCell) cell {
		out := cell{head: mib(c.Ledger.Residual), tail: "±" + mib(c.Ledger.Uncertainty)}
		if c.Ledger.Residual > c.Ledger.Uncertainty || -c.Ledger.Residual > c.Ledger.Uncertainty {
			out.style = term.Yellow
		}
		return out
	}))
	s.table = m.spread()
	if first {
		s.notes = []string{
			"the change since before the sandboxes, of all of them together, in the round whose sum is the median; PSS, so no page is counted twice; page cache is apart",
			"residual: what the node's memory in use changed by and nothing explains: node − sum − others − uncharged of the next table, ± what cannot be told apart",
		}
		if slices.ContainsFunc(t.Cells, func(c judge.OverheadCell) bool { return c.Sum.Known }) {
			s.notes = append(s.notes, "sum ± the larger half of the rounds' 95 % interval")
		}
	}
	if incomplete {
		s.notes = append(s.notes, "≥ something of the target could not be read, and its sum is too small")
	}
	if t.Command != "" {
		s.notes = append(s.notes, "inside: "+t.Command)
	}
	s.notes = append(s.notes, failures(v, t)...)
	return s
}

// failures say which targets have no figures, and why.
func failures(v *judge.Overhead, t *judge.OverheadTable) (out []string) {
	var absent []string
	for _, target := range v.Targets {
		if !slices.ContainsFunc(t.Cells, func(c judge.OverheadCell) bool { return c.Target == target.Name }) {
			absent = append(absent, heading(target.Name))
		}
	}
	if absent != nil {
		out = append(out, "no figures: "+strings.Join(absent, ", "))
	}
	for i := range t.Cells {
		c := &t.Cells[i]
		if c.Failed == 0 {
			continue
		}
		text := fmt.Sprintf("%s: %d/%d rounds failed", heading(c.Target), c.Failed, c.Rounds+c.Failed)
		if c.Failure != nil {
			text += "; the first: " + short(term.Clean(c.Failure.Detail), longestMessage)
		}
		out = append(out, text)
	}
	return out
}

// cacheAndNode closes the page cache's own books, and is how the node fared.
func cacheAndNode(t *judge.OverheadTable, first bool) *section {
	s := titled(t, "the node, and page cache, MiB")
	m := byTarget(t)
	m.column("node", figures(t, func(c *judge.OverheadCell) cell { return plain(mib(c.Ledger.Node)) }))
	m.column("others", figures(t, func(c *judge.OverheadCell) cell { return plain(mib(c.Ledger.Others)) }))
	m.column("uncharged", figures(t, func(c *judge.OverheadCell) cell { return plain(mib(c.Ledger.Uncharged)) }))
	m.column("cache charged", figures(t, func(c *judge.OverheadCell) cell { return someMiB(c.Ledger.Cache.Charged) }))
	m.column("mapped", figures(t, func(c *judge.OverheadCell) cell { return someMiB(c.Ledger.Cache.Mapped) }))
	m.column("of node", figures(t, func(c *judge.OverheadCell) cell { return someMiB(c.Ledger.Cache.Node) }))
	m.column("available", figures(t, func(c *judge.OverheadCell) cell {
		return plain(growth(float64(c.Ledger.AvailableChange)))
	}))
	m.column("load", figures(t, func(c *judge.OverheadCell) cell { return plain(ratio(c.Ledger.Load1, "%.2f")) }))
	m.onlyIf("read", figures(t, func(c *judge.OverheadCell) cell { return rate(c.Ledger.NodeIO.Read) }))
	m.onlyIf("written", figures(t, func(c *judge.OverheadCell) cell { return rate(c.Ledger.NodeIO.Write) }))
	for _, p := range []struct {
		title string
		of    func(*ledger.Pressure) float64
	}{
		{"PSI cpu", func(p *ledger.Pressure) float64 { return p.CPU }},
		{"PSI memory", func(p *ledger.Pressure) float64 { return p.Memory }},
		{"PSI io", func(p *ledger.Pressure) float64 { return p.IO }},
	} {
		m.onlyIf(p.title, figures(t, func(c *judge.OverheadCell) cell {
			share := p.of(&c.Ledger.PSI)
			if !c.Ledger.PSI.Known || share < 0.0005 {
				return plain(dot)
			}
			return plain(ratio(100*share, "%.1f %%"))
		}))
	}
	s.table = m.spread()
	if first {
		s.notes = []string{"node: the change of the node's memory in use; of it others: all other processes, uncharged: kernel memory that nobody of the target is charged for; page cache charged to the sandboxes' own cgroups, mapped by the target's processes (PSS), and the change of the node's; available: the change of MemAvailable; PSI: the share of the phase in which some task waited"}
	}
	return s
}

func rate(bytes float64) cell {
	if bytes == 0 {
		return plain(dot)
	}
	return plain(memory(bytes) + "/s")
}
