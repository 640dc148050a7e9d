package lifecycle

import (
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// details are every stamp, the resources of the operations' own commands, and
// the reason of every verdict.
func details(t *Table) *page.Section {
	s := &page.Section{Title: page.Lanes(t.Lanes) + ": every stamp, the commands' own resources, and the verdicts", Style: term.Bold}
	for _, row := range t.Rows {
		list := page.List{Heading: string(row.Op)}
		for i := range row.Cells {
			if c := &row.Cells[i]; c.Absent == "" {
				list.Items = append(list.Items, detail(c)...)
			}
		}
		if list.Items != nil {
			s.Lists = append(s.Lists, list)
		}
	}
	if s.Lists != nil {
		s.Notes = []string{"all are medians, each by itself: CPU need not be the sum of user and system"}
	}
	return s
}

func detail(c *Cell) []page.Item {
	parts := []string{fmt.Sprintf("n=%d", c.Time.Estimate.N)}
	for _, m := range c.Moments {
		part := m.Labels.Get("stamp") + " " + page.Duration(m.Estimate.Value)
		if m.Labels.Get("stamp") == string(record.StampReady) {
			part += c.Ready.text()
		}
		parts = append(parts, part)
	}
	if cpu := c.Own[0].Estimate.Value; cpu > 0 {
		parts = append(parts, fmt.Sprintf("CPU %s (user %s, system %s)", page.Duration(cpu), page.Duration(c.Own[1].Estimate.Value), page.Duration(c.Own[2].Estimate.Value)))
	}
	if rss := c.Own[3].Estimate.Value; rss > 0 {
		parts = append(parts, "max RSS "+page.Size(rss))
	}
	items := []page.Item{{Key: page.Heading(c.Target), Text: strings.Join(parts, " · ")}}
	if f := c.compared(); f.Versus != nil {
		items = append(items, page.Item{Text: strings.TrimSpace("vs "+f.Versus.Baseline+" "+f.Labels.Get("stamp")) + ": " + f.Versus.Why})
	}
	return items
}
