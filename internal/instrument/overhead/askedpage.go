package overhead

import (
	"strconv"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// asked shows the results of the request load, or nil if there was none.
func asked(j *Judgement) *page.Section {
	m := page.Names("target")
	var rows []Cell
	for _, c := range j.cells() {
		if kindOf(c.Phase) == PhaseLoad {
			m.Row(targetCell(c))
			rows = append(rows, *c)
		}
	}
	if rows == nil {
		return nil
	}
	m.AddUnless("requests/s", page.Each(rows, func(c *Cell) page.Cell { return page.WithHalf(c.All.Of("requests"), page.Significant, page.None) }))
	m.AddIf("failed", page.Each(rows, func(c *Cell) page.Cell {
		if c.Errors == 0 {
			return page.Words(page.Dot)
		}
		return page.Cell{Head: strconv.FormatInt(c.Errors, 10), Style: term.Red}
	}))
	m.Add("memory above idle", page.Each(rows, func(c *Cell) page.Cell { return page.WithHalf(c.All.Of("memory-above-idle"), page.Memory, page.None) }))
	return &page.Section{Title: "under load " + page.Heading(j.Plan.URL), Style: term.Bold, Table: m,
		Notes: []string{"memory above idle: anonymous, shared and huge pages per sandbox of the roles that a load inside affects (workload, pause, VMM, vCPU, virtiofsd, sentry, gofer), read after the load; the tables of the phase show all roles and charges"}}
}
