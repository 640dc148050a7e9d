package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// isulad is the table of the iSulad performance report (2020), to stand beside
// its own and those made after it: trimmed means in milliseconds, and their
// differences in percent. It decides nothing.
//
// It has the percentages of the subject against each other target, as the report has
// them; without a subject those of each other target against the baseline.
func isulad(j *Judgement, t *Table, subject string) *page.Section {
	against := cmp.Or(subject, j.Baseline)
	pivot := slices.IndexFunc(j.Targets, func(t record.Target) bool { return t.Name == against })
	t = j.comparedWith(t, against)
	table := page.Names("operation (ms)")
	for _, row := range t.Rows {
		name := string(row.Op)
		if t.Lanes > 1 {
			name = fmt.Sprintf("%d * %s", t.Lanes, row.Op)
		}
		table.Row(page.Words(name))
	}
	for i := range j.Targets {
		table.Add(page.Heading(j.Targets[i].Name)+" (avg)", page.Each(t.Rows, func(r *Row) page.Cell { return page.Value(&r.Cells[i].Trimmed, milliseconds) }))
		if i == pivot { // it stands in every part
			table.Columns[i+1].Group = 0
		}
	}
	for i := range j.Targets {
		if i == pivot || pivot < 0 {
			continue
		}
		title := page.Heading(j.Targets[i].Name) + " VS " + page.Heading(against)
		if subject != "" {
			title = "VS " + page.Heading(j.Targets[i].Name)
		}
		table.Add(title, page.Each(t.Rows, func(r *Row) page.Cell {
			from, to := &r.Cells[pivot].Trimmed, &r.Cells[i].Trimmed
			if subject != "" {
				from, to = to, from
			}
			return page.Versus(from, to, r.Cells[i].compared().Versus)
		}))
		table.Columns[len(table.Columns)-1].Group = table.Columns[i+1].Group // beside the target's own
	}
	return &page.Section{
		Title: fmt.Sprintf("%s: mean without the largest and the smallest of %s (iSulad report, 2020)", page.Lanes(t.Lanes), page.Amount(t.Rounds, "round")),
		Style: term.Bold, Table: table, Notes: fewerRounds(t),
	}
}

// comparedWith is the table with each figure compared with that of one target, which says
// whether a difference was shown: the means of such a table show none by themselves.
func (j *Judgement) comparedWith(t *Table, with string) *Table {
	out := *t
	out.Rows = slices.Clone(t.Rows)
	for r := range out.Rows {
		cells := slices.Clone(out.Rows[r].Cells)
		for i := range cells {
			cells[i].Time.Versus = nil
			cells[i].Moments = slices.Clone(cells[i].Moments)
			if r := cells[i].returned(); r != nil {
				r.Versus = nil
			}
		}
		out.Rows[r].Cells = cells
	}
	j.compare(&out, with)
	return &out
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
