package lifecycle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Role is what the processes of one role of a target used for an operation, over
// the measured rounds in which no lane failed and every process could be read.
type Role struct {
	Role   record.Role
	N      int             // rounds; without one there are no figures
	Unread int             // processes that could not be read, in rounds that do not count for it
	Used   []figure.Figure // see [roleFigures]; none without rounds
}

// The figures of a role, in the order of Role.Used. Memory is PSS.
const (
	roleBefore    = iota // processes
	roleAfter            //
	roleCPU              // an operation's: that of the batch ÷ its lanes; none is known where one of them ended in the batch
	rolePSSBefore        //
	rolePSSPeak          //
	rolePSSAfter         //
	roleGrowth           // for each container: (after − before) ÷ lanes; below 0 where memory was given back
	roleEach             // of one process: the memory after ÷ the processes, or before where there is none after
	roleFigures
)

var roleQuantities = [roleFigures]struct {
	quantity, when string
	unit           figure.Unit
}{
	{"role-processes", "before", figure.Count}, {"role-processes", "after", figure.Count}, {"role-cpu", "", figure.Nanoseconds},
	{"role-memory", "before", figure.Bytes}, {"role-memory", "peak", figure.Bytes}, {"role-memory", "after", figure.Bytes},
	{"role-memory-growth", "", figure.Bytes}, {"role-memory-each", "", figure.Bytes},
}

// knownRoles are in the order in which they are shown; others follow by name.
var knownRoles = []record.Role{record.RoleDaemon, record.RoleShim, record.RoleMonitor, record.RoleVMM, record.RoleVirtiofs}

// roleRounds gathers them.
type roleRounds map[record.Role]*struct {
	values [roleFigures][]float64
	unread int
}

// add takes a batch in which every lane did what it was asked for.
func (g roleRounds) add(b *record.Batch) {
	for _, u := range b.Roles {
		r := g[u.Role]
		if r == nil {
			r = new(struct {
				values [roleFigures][]float64
				unread int
			})
			g[u.Role] = r
		}
		if u.Unread > 0 {
			r.unread += u.Unread
			continue
		}
		put := func(i int, v float64) { r.values[i] = append(r.values[i], v) }
		lanes := float64(b.Lanes)
		put(roleBefore, float64(u.Before))
		put(roleAfter, float64(u.After))
		if max(u.Ended, u.Before-u.After) <= 0 { // older records have no Ended
			put(roleCPU, float64(u.CPU)/lanes)
		}
		put(rolePSSBefore, float64(u.PSSBefore))
		put(rolePSSPeak, float64(u.PSSPeak))
		put(rolePSSAfter, float64(u.PSSAfter))
		put(roleGrowth, float64(u.PSSAfter-u.PSSBefore)/lanes)
		switch {
		case u.After > 0:
			put(roleEach, float64(u.PSSAfter)/float64(u.After))
		case u.Before > 0:
			put(roleEach, float64(u.PSSBefore)/float64(u.Before))
		}
	}
}

func (g roleRounds) figures(labels figure.Labels) []Role {
	var out []Role
	for role, r := range g {
		one := Role{Role: role, N: len(r.values[roleBefore]), Unread: r.unread}
		for i, q := range roleQuantities {
			f := about(q.quantity, q.unit, labels.With("role", string(role)))
			if q.when != "" {
				f.Labels = f.Labels.With("when", q.when)
			}
			switch values := r.values[i]; {
			case len(values) > 0:
				f.Estimate = middle(values)
			case i != roleCPU && one.N > 0: // nothing is left to divide by
				f.Estimate = figure.Exactly(0)
			}
			one.Used = append(one.Used, f)
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Role) int {
		return cmp.Or(cmp.Compare(rank(a.Role), rank(b.Role)), cmp.Compare(a.Role, b.Role))
	})
	return out
}

func rank(r record.Role) int {
	if i := slices.Index(knownRoles, r); i >= 0 {
		return i
	}
	return len(knownRoles)
}

// roles is what stands beside the time: the CPU time and the memory of the
// engine's own processes.
func roles(t *Table) *page.Section {
	s := &page.Section{Title: page.Lanes(t.Lanes) + ": what the engine itself used", Style: term.Bold}
	s.Table = page.Names("", "target", "role")
	s.Notes = []string{
		"the engine's own processes, not its clients' and not the workload; medians over the rounds in which no lane failed and all could be read",
		"memory is PSS: a page that several processes share is counted once among them, so one of many is lighter than one alone. Before and after: nothing is released; peak: the largest that was read",
		"CPU: of batches in which none of them ended, from before to after, ÷ lanes, without what they ran and waited for, such as the OCI runtime, and with what they did for others meanwhile; growth: (after − before) ÷ lanes",
	}
	var shown []Role
	for _, row := range t.Rows {
		op := string(row.Op)
		for i := range row.Cells {
			name := page.Heading(row.Cells[i].Target)
			target := name
			for _, r := range row.Cells[i].Roles {
				s.Table.Row(page.Cell{Head: op, Label: string(row.Op)}, page.Cell{Head: target, Label: name}, page.Words(page.Heading(string(r.Role))))
				op, target = "", ""
				shown = append(shown, r)
				if r.Unread > 0 {
					s.Notes = append(s.Notes, fmt.Sprintf("%s %s, %s: processes that could not be read %d; of what it used %s count",
						name, row.Op, page.Heading(string(r.Role)), r.Unread, page.Amount(r.N, "round")))
				}
			}
		}
	}
	s.Table.Add("processes", page.Each(shown, processes))
	for _, c := range []struct {
		title string
		which int
		show  func(float64) string
	}{
		{"CPU per operation", roleCPU, page.Duration}, {"memory before", rolePSSBefore, page.Memory}, {"peak", rolePSSPeak, page.Memory},
		{"after", rolePSSAfter, page.Memory}, {"growth per container", roleGrowth, page.Growth}, {"each process", roleEach, page.Memory},
	} {
		s.Table.Add(c.title, page.Each(shown, func(r *Role) page.Cell { return page.Value(&r.Used[c.which], c.show) }))
	}
	return s
}

// processes shows how many there were, and how many there are.
func processes(r *Role) page.Cell {
	before, after := r.Used[roleBefore].Estimate, r.Used[roleAfter].Estimate
	c := page.Cell{Head: page.None, Figure: &r.Used[roleAfter]}
	if r.N == 0 {
		return c
	}
	c.Head = page.Count(after.Value)
	if before.Value != after.Value {
		c.Head = page.Count(before.Value) + " → " + c.Head
	}
	return c
}
