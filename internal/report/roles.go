package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// roleColumns are what is said of the processes of a role.
var roleColumns = []struct {
	title string
	show  func(*judge.RoleFacts) string
}{
	{"processes", processes},
	{"CPU per operation", func(r *judge.RoleFacts) string {
		if r.CPU == nil || !finite(*r.CPU) {
			return none
		}
		return duration(*r.CPU)
	}},
	{"memory before", func(r *judge.RoleFacts) string { return memory(r.PSSBefore) }},
	{"peak", func(r *judge.RoleFacts) string { return memory(r.PSSPeak) }},
	{"after", func(r *judge.RoleFacts) string { return memory(r.PSSAfter) }},
	{"growth per container", func(r *judge.RoleFacts) string { return growth(r.Growth) }},
	{"each process", func(r *judge.RoleFacts) string { return memory(r.Each) }},
}

func hasRoles(t *judge.Table) bool {
	for _, row := range t.Rows {
		if slices.ContainsFunc(row.Cells, func(c judge.Cell) bool { return len(c.Roles) > 0 }) {
			return true
		}
	}
	return false
}

// roles is what stands beside the time: the CPU time and the memory of the
// engine's own processes.
func roles(t *judge.Table) section {
	s := section{title: lanesOf(t.Lanes) + ": what the engine itself used", style: term.Bold}
	s.table = &spread{pivot: -1, build: func(of []int) *grid { return rolesOfColumns(t, of) }}
	for i := range roleColumns {
		s.table.order = append(s.table.order, i)
	}
	s.notes = []string{
		"the engine's own processes, not its clients' and not the workload; medians over the rounds in which no lane failed and all could be read",
		"memory is PSS: a page that several processes share is counted once among them, so one of many is lighter than one alone. Before and after: nothing is released; peak: the largest that was read",
		"CPU: of those there after the batch, from before to after it, ÷ lanes, without what they ran and waited for, such as the OCI runtime, and with what they did for others meanwhile; growth: (after − before) ÷ lanes",
	}
	for _, row := range t.Rows {
		for i := range row.Cells {
			for _, r := range row.Cells[i].Roles {
				if r.Unread > 0 {
					s.notes = append(s.notes, fmt.Sprintf("%s %s, %s: processes that could not be read %d; of what it used %s count",
						heading(row.Cells[i].Target), row.Op, heading(string(r.Role)), r.Unread, roundsOf(r.N)))
				}
			}
		}
	}
	return s
}

func rolesOfColumns(t *judge.Table, of []int) *grid {
	g := &grid{columns: []term.Column{{}, {Title: "target"}, {Title: "role"}}}
	for _, i := range of {
		g.columns = append(g.columns, term.Column{Title: roleColumns[i].title, Right: true})
	}
	for _, row := range t.Rows {
		op := string(row.Op)
		for i := range row.Cells {
			target := heading(row.Cells[i].Target)
			for j := range row.Cells[i].Roles {
				r := &row.Cells[i].Roles[j]
				cells := []cell{{head: op, label: string(row.Op)}, {head: target, label: heading(row.Cells[i].Target)}, plain(heading(string(r.Role)))}
				op, target = "", ""
				for _, k := range of {
					text := none
					if r.N > 0 {
						text = roleColumns[k].show(r)
					}
					cells = append(cells, plain(text))
				}
				g.rows = append(g.rows, cells)
			}
		}
	}
	return g
}

// processes shows how many there were, and how many there are.
func processes(r *judge.RoleFacts) string {
	if !finite(r.Before) || !finite(r.After) {
		return none
	}
	if r.Before == r.After {
		return count(r.After)
	}
	return count(r.Before) + " → " + count(r.After)
}

// count is a median of whole numbers, which can lie between two.
func count(v float64) string {
	if v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func memory(bytes float64) string {
	switch {
	case !finite(bytes):
		return none
	case bytes == 0:
		return "0"
	}
	return size(bytes)
}

func growth(bytes float64) string {
	switch {
	case finite(bytes) && bytes < 0:
		return "-" + size(-bytes)
	case finite(bytes) && bytes > 0:
		return "+" + size(bytes)
	}
	return memory(bytes)
}
