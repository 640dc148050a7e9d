package overhead

import (
	"fmt"
	"math"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// explained shows the rule behind every role, memory by kind, and all paths.
func explained(t *Table) *page.Section {
	s := titled(t, "rules, memory by kind in MiB, and cgroups")
	for c := range ledger.Each(t.Cells) {
		if c.Rounds == 0 {
			continue
		}
		l := &c.Ledger
		list := page.List{Heading: page.Heading(c.Target)}
		for r := range ledger.Each(l.Rows) {
			list.Items = append(list.Items, explainedRow(r)...)
		}
		list.Items = append(list.Items,
			page.Item{Key: "residual", Text: page.Dotted(page.MiB(l.Residual)+" ±"+page.MiB(l.Uncertainty), kinds(&l.ResidualBy), "the rest has no known kind")})
		for g := range ledger.Each(l.Groups) {
			list.Items = append(list.Items, page.Item{Key: page.Heading(string(g.Charge)), Text: page.Dotted(page.Amount(g.Count, "cgroup"), "usage "+page.MiB(g.Usage), kinds(&g.Memory), rolesText(g.Roles))})
			for _, path := range g.Paths {
				list.Items = append(list.Items, page.Item{Text: path})
			}
		}
		if text := page.Dotted(amounts(&l.Problems), strings.Join(l.Problems.Examples, "; ")); text != "" {
			list.Items = append(list.Items, page.Item{Key: "not read", Text: text, Style: term.Yellow})
		}
		s.Lists = append(s.Lists, list)
	}
	if s.Lists == nil {
		return nil
	}
	return s
}

func explainedRow(row *ledger.Row) []page.Item {
	count := ""
	switch {
	case row.Processes == 1:
		count = "1 process"
	case row.Processes > 1:
		count = fmt.Sprintf("%d processes", row.Processes)
	}
	cpu := ""
	if row.CPUKnown && math.Abs(row.CPU) >= leastCPU {
		cpu = "CPU " + page.Milli(row.CPU) + " m"
	}
	items := []page.Item{{Key: page.Heading(string(row.Role)), Text: page.Dotted(count, kinds(&row.Memory), cpu)}}
	for _, rule := range row.Rules {
		if items[0].Text == "" {
			items[0].Text = rule
			continue
		}
		items = append(items, page.Item{Text: rule})
	}
	return items
}

// kinds formats the nonzero kinds of memory.
func kinds(m *ledger.Memory) string {
	return nonzero(kindsOf(m), func(k named[int64]) string { return k.name + " " + page.MiB(k.n) })
}

// nonzero lists the amounts that are not 0.
func nonzero[N int | int64](all []named[N], show func(named[N]) string) string {
	var parts []string
	for _, one := range all {
		if one.n != 0 {
			parts = append(parts, show(one))
		}
	}
	return strings.Join(parts, ", ")
}

// problemsOf returns the kinds of read problems with their counts.
func problemsOf(p *record.Problems) []named[int] {
	return []named[int]{{"gone", p.Gone}, {"pids used again", p.Reused}, {"denied", p.Denied}, {"counters that went back", p.Backwards}, {"of an unknown form", p.Broken}}
}

// amounts formats the read problems that occurred.
func amounts(p *record.Problems) string {
	return nonzero(problemsOf(p), func(one named[int]) string { return fmt.Sprintf("%d %s", one.n, one.name) })
}
