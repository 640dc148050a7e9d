package report

import (
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// details are every stamp, the resources of the operations' own commands, and
// the reason of every verdict.
func details(t *judge.Table) section {
	s := section{title: lanesOf(t.Lanes) + ": every stamp, the commands' own resources, and the verdicts", style: term.Bold}
	for _, row := range t.Rows {
		list := list{heading: string(row.Op)}
		for i := range row.Cells {
			if c := &row.Cells[i]; c.Absent == "" {
				list.items = append(list.items, detail(c)...)
			}
		}
		if list.items != nil {
			s.lists = append(s.lists, list)
		}
	}
	return s
}

func detail(c *judge.Cell) []item {
	parts := []string{fmt.Sprintf("n=%d", c.Summary.N)}
	for _, m := range c.Moments {
		parts = append(parts, string(m.Stamp)+" "+duration(m.Summary.Median))
	}
	if c.UserCPU+c.SysCPU > 0 {
		parts = append(parts, fmt.Sprintf("CPU %s user, %s system", duration(c.UserCPU), duration(c.SysCPU)))
	}
	if c.MaxRSS > 0 {
		parts = append(parts, "max RSS "+size(c.MaxRSS))
	}
	items := []item{{key: heading(c.Target), text: strings.Join(parts, " · ")}}
	if v := c.Versus; v != nil {
		items = append(items, item{text: "vs " + v.Baseline + ": " + v.Why})
	}
	return items
}
