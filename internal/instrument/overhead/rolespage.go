package overhead

import (
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// rolesIn returns the roles in the table, in the order of rows. Page cache, uncharged kernel
// memory and other processes are not part of a target's sum.
func rolesIn(t *Table) []record.Role {
	summed := map[record.Role]bool{}
	for c := range ledger.Each(t.Cells) {
		for _, row := range c.Ledger.Rows {
			if row.Role != record.RoleCache && row.Role != record.RoleOthers && row.Role != record.RoleKernelNode {
				summed[row.Role] = true
			}
		}
	}
	return ledger.Order(summed)
}

// memoryByRole shows the main table: memory by role, and the residual.
func memoryByRole(v *Judgement, t *Table, first bool) *page.Section {
	roles := page.Quantity{Of: "role-memory", Key: "role", Draw: func(f *figure.Figure) page.Cell { return someMiB(int64(f.Value)) }}
	for _, role := range rolesIn(t) {
		roles.Titles, roles.Values = append(roles.Titles, page.Heading(string(role))), append(roles.Values, string(role))
	}
	incomplete := false
	column := func(title string, of *page.Beside, show func(*Cell) page.Cell) page.Quantity {
		return page.Quantity{Of: "memory", Titles: []string{title}, Beside: of, Cell: func(row figure.Set) page.Cell {
			if c := t.of(row.Get("target")); c.Rounds > 0 {
				return show(c)
			}
			return page.Words(page.Dot)
		}}
	}
	s := t.grid("memory by role, MiB ("+roundsIn(t)+")", false, []string{"target"}, roles,
		column("sum", page.Estimates, func(c *Cell) page.Cell {
			f := c.All.Of("memory")
			out := page.Cell{Head: page.MiB(c.Ledger.Sum), Tail: within(f), Style: term.Bold, Figure: f}
			if !c.Ledger.Complete {
				incomplete, out.Head = true, "≥ "+out.Head
			}
			return out
		}),
		column("swapped", nil, func(c *Cell) page.Cell { return someMiB(swapped(&c.Ledger)) }),
		column("residual", nil, func(c *Cell) page.Cell {
			out := page.Cell{Head: page.MiB(c.Ledger.Residual), Tail: "±" + page.MiB(c.Ledger.Uncertainty)}
			if c.Ledger.Residual > c.Ledger.Uncertainty || -c.Ledger.Residual > c.Ledger.Uncertainty {
				out.Style = term.Yellow
			}
			return out
		}))
	if s == nil {
		s = titled(t, "memory by role: no figures")
	}
	if first {
		s.Draw(memoryChart(v), sumsChart(v, "memory", "memory"))
	}
	var notes lines
	notes.addIf(first,
		"change since before the sandboxes, summed over all sandboxes, in the round with the median sum; PSS, so no page is counted twice; without page cache",
		"residual: unexplained change of the node's used memory: node − sum − others − uncharged of the next table, ± its uncertainty")
	notes.addIf(first && slices.ContainsFunc(t.Cells, func(c Cell) bool { return c.All.Of("memory").Bounded }), "sum ± the larger half of the rounds' 95 % interval")
	notes.addIf(slices.ContainsFunc(t.Cells, func(c Cell) bool { return swapped(&c.Ledger) != 0 }),
		"swapped: memory of the sandboxes on the swap device, in no row and not in the sum; it returns to memory when used")
	notes.addIf(incomplete, "≥ part of the target could not be read, so its sum is too small")
	notes.addIf(t.Command != "", "inside: "+t.Command)
	notes.addFailures(v, t)
	s.Notes = notes
	return s
}

// swapped returns the swapped memory of a target, in bytes.
func swapped(l *ledger.Ledger) (bytes int64) {
	for _, r := range l.Rows {
		bytes += r.Memory.Swap
	}
	return bytes
}

// addFailures explains which targets have no figures, and why.
func (l *lines) addFailures(v *Judgement, t *Table) {
	var absent []string
	for _, target := range v.Targets {
		if t.of(target.Name) == nil {
			absent = append(absent, target.Name)
		}
	}
	l.addIf(absent != nil, "no figures: "+headings(absent, ", "))
	for c := range ledger.Each(t.Cells) {
		text := fmt.Sprintf("%s: %d/%d rounds failed", page.Heading(c.Target), c.Failed, c.Rounds+c.Failed)
		if c.Failure != nil {
			text += "; the first: " + page.Short(term.Clean(c.Failure.Detail), page.LongestMessage)
		}
		l.addIf(c.Failed > 0, text)
	}
}

// cacheAndNode shows the page cache and the change of the node.
func cacheAndNode(t *Table, first bool) *page.Section {
	return t.grid("the node, and page cache, MiB", first, []string{"target"},
		page.Quantity{Of: "node-change", Titles: []string{"node", "others", "uncharged"}, Key: "of", Values: []string{"node", "others", "uncharged"}, Show: page.MiB[float64]},
		page.Quantity{Of: "page-cache", Titles: []string{"cache charged", "mapped", "of node"}, Key: "of", Values: []string{"charged", "mapped", "node"}, Show: page.MiB[float64]},
		page.Quantity{Of: "node-change", Titles: []string{"available"}, Key: "of", Values: []string{"available"}, Show: page.Growth})
}

// nodeFared shows the load of the whole node in the phase.
func nodeFared(v *Judgement, t *Table, first bool) *page.Section {
	cpus := float64(v.Record.Header.Environment.CPUs)
	share := func(used float64) string {
		if cpus <= 0 {
			return page.Dot
		}
		return page.Hundred(used / cpus)
	}
	return t.grid("node load", first, []string{"target"},
		page.Quantity{Of: "node-busy", Titles: []string{"busy %"}, Show: share},
		page.Quantity{Of: "node-iowait", Titles: []string{"iowait %"}, Show: share},
		page.Quantity{Of: "node-load", Titles: []string{"load"}, Show: func(v float64) string { return ratio(v, "%.2f") }},
		page.Quantity{Of: "node-io", Titles: []string{"read", "written"}, Key: "of", Values: []string{"read", "written"}, Show: func(v float64) string { return page.Memory(v) + "/s" }},
		page.Quantity{Of: "node-pressure", Titles: []string{"PSI cpu", "PSI memory", "PSI io"}, Key: "resource", Values: []string{"cpu", "memory", "io"}, Show: func(share float64) string {
			if share < 0.0005 {
				return page.Dot
			}
			return ratio(100*share, "%.1f %%")
		}})
}

// grid returns a section of the table's figures. Only the first of its kind has a legend.
func (t *Table) grid(what string, first bool, labels []string, columns ...page.Quantity) *page.Section {
	s := page.Grid(&Quantities, t.figures(), labels, columns)
	if s == nil {
		return nil
	}
	if s.Title = t.heading() + ": " + what; !first {
		s.Notes = nil
	}
	return s
}

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
