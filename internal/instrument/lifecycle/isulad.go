package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// isulad is the table of the iSulad performance report (2020), to stand beside
// its own and those made after it: trimmed means in milliseconds, and their
// differences in percent. It decides nothing.
func isulad(j *Judgement, t *Table, subject string) *page.Section {
	s := &page.Section{
		Title: fmt.Sprintf("%s: mean without the largest and the smallest of %s (iSulad report, 2020)", page.Lanes(t.Lanes), page.Amount(t.Rounds, "round")),
		Style: term.Bold,
		Notes: fewerRounds(t),
	}
	pivotName := subject
	if pivotName == "" {
		pivotName = j.Baseline
	}
	pivot := slices.IndexFunc(j.Targets, func(t record.Target) bool { return t.Name == pivotName })
	s.Table = isuladTable(j, t, pivot, subject != "")
	return s
}

// isuladTable has the percentages of the pivot against each other target if it is
// the subject, as in the report; else those of each other target against the pivot.
func isuladTable(j *Judgement, t *Table, pivot int, subject bool) *page.Table {
	verdicts := verdictsAgainst(j, t, pivot)
	table := page.Names("operation (ms)")
	for i := range j.Targets {
		column := page.Column{Title: page.Heading(j.Targets[i].Name) + " (avg)", Right: true, Group: i + 1}
		if i == pivot {
			column.Group = 0
		}
		table.Columns = append(table.Columns, column)
	}
	for i := range j.Targets {
		if i == pivot || pivot < 0 {
			continue
		}
		title := page.Heading(j.Targets[i].Name) + " VS " + page.Heading(j.Targets[pivot].Name)
		if subject {
			title = "VS " + page.Heading(j.Targets[i].Name)
		}
		table.Columns = append(table.Columns, page.Column{Title: title, Right: true, Group: i + 1})
	}
	for r, row := range t.Rows {
		name := string(row.Op)
		if t.Lanes > 1 {
			name = fmt.Sprintf("%d * %s", t.Lanes, row.Op)
		}
		cells := []page.Cell{page.Words(name)}
		for i := range row.Cells {
			cells = append(cells, page.Value(&row.Cells[i].Trimmed, milliseconds))
		}
		for i := range row.Cells {
			if i == pivot || pivot < 0 {
				continue
			}
			from, to := &row.Cells[pivot].Trimmed, &row.Cells[i].Trimmed
			if subject {
				from, to = to, from
			}
			cells = append(cells, page.Versus(from, to, verdicts[[2]int{r, i}]))
		}
		table.Row(cells...)
	}
	return table
}

// verdictsAgainst says by row and target whether a difference from the pivot was
// shown: the means of such a table show none by themselves.
func verdictsAgainst(j *Judgement, t *Table, pivot int) map[[2]int]*figure.Versus {
	out := map[[2]int]*figure.Versus{}
	if pivot < 0 {
		return out
	}
	copied := Table{Rows: make([]Row, len(t.Rows))}
	for r, row := range t.Rows {
		copied.Rows[r] = Row{Op: row.Op, Cells: slices.Clone(row.Cells)}
		for i := range copied.Rows[r].Cells {
			copied.Rows[r].Cells[i].Time.Versus = nil
		}
	}
	j.compare(&copied, j.Targets[pivot].Name)
	for r, row := range copied.Rows {
		for i := range row.Cells {
			out[[2]int{r, i}] = row.Cells[i].Time.Versus
		}
	}
	return out
}

// milliseconds are whole ones as in the report, with decimals where a whole
// one would say too little.
func milliseconds(ns float64) string {
	decimals := 2
	switch ms := ns / 1e6; {
	case ms >= 9.95:
		decimals = 0
	case ms >= 0.995:
		decimals = 1
	}
	return strconv.FormatFloat(ns/1e6, 'f', decimals, 64)
}

// fewerRounds names the means of fewer rounds than the title says.
func fewerRounds(t *Table) []string {
	var out []string
	for _, row := range t.Rows {
		for _, c := range row.Cells {
			if c.Absent == "" && c.Time.Estimate.N < t.Rounds {
				out = append(out, fmt.Sprintf("%s %s %d", page.Heading(c.Target), row.Op, c.Time.Estimate.N))
			}
		}
	}
	if out == nil {
		return nil
	}
	return []string{"of fewer rounds, those without a failure: " + strings.Join(out, ", ")}
}
