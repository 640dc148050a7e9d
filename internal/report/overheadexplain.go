package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// explained is the fact behind every role, memory by kind, and every path.
func explained(t *judge.OverheadTable) *section {
	s := titled(t, "why, by kind of memory in MiB, and which cgroups")
	for i := range t.Cells {
		c := &t.Cells[i]
		if c.Rounds == 0 {
			continue
		}
		l := &c.Ledger
		list := list{heading: heading(c.Target)}
		for j := range l.Rows {
			list.items = append(list.items, explainedRow(&l.Rows[j])...)
		}
		list.items = append(list.items,
			item{key: "residual", text: dotted(mib(l.Residual)+" ±"+mib(l.Uncertainty), kinds(&l.ResidualBy), "the rest is in no kind")})
		for j := range l.Groups {
			g := &l.Groups[j]
			list.items = append(list.items, item{key: heading(string(g.Charge)), text: dotted(groupsOf(g.Count), "usage "+mib(g.Usage), kinds(&g.Memory), rolesText(g.Roles))})
			for _, path := range g.Paths {
				list.items = append(list.items, item{text: path})
			}
		}
		if text := problems(&l.Problems); text != "" {
			list.items = append(list.items, item{key: "not read", text: text, style: term.Yellow})
		}
		s.lists = append(s.lists, list)
	}
	if s.lists == nil {
		return nil
	}
	return s
}

func explainedRow(row *ledger.Row) []item {
	count := ""
	switch {
	case row.Processes == 1:
		count = "1 process"
	case row.Processes > 1:
		count = fmt.Sprintf("%d processes", row.Processes)
	}
	cpu := ""
	if row.CPUKnown && math.Abs(row.CPU) >= leastCPU {
		cpu = "CPU " + milli(row.CPU) + " m"
	}
	items := []item{{key: heading(string(row.Role)), text: dotted(count, kinds(&row.Memory), cpu)}}
	for _, rule := range row.Rules {
		if items[0].text == "" {
			items[0].text = rule
			continue
		}
		items = append(items, item{text: rule})
	}
	return items
}

func groupsOf(n int) string {
	if n == 1 {
		return "1 cgroup"
	}
	return fmt.Sprintf("%d cgroups", n)
}

// kinds are the kinds of memory that there is some of.
func kinds(m *ledger.Memory) string {
	var parts []string
	for _, k := range []struct {
		name  string
		bytes int64
	}{{"anon", m.Anon}, {"shmem", m.Shmem}, {"kernel", m.Kernel}, {"huge", m.Huge}, {"swap", m.Swap}, {"cache", m.Cache}} {
		if k.bytes != 0 {
			parts = append(parts, k.name+" "+mib(k.bytes))
		}
	}
	return strings.Join(parts, ", ")
}

func problems(p *record.Problems) string {
	var parts []string
	for _, one := range []struct {
		name  string
		count int
	}{{"gone", p.Gone}, {"pids used again", p.Reused}, {"denied", p.Denied}, {"counters that went back", p.Backwards}, {"of an unknown form", p.Broken}} {
		if one.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.count, one.name))
		}
	}
	return dotted(strings.Join(parts, ", "), strings.Join(p.Examples, "; "))
}
