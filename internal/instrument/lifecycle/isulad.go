package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// isulad returns the table of the iSulad performance report (2020), for comparison with
// that report and later ones. It has trimmed means in milliseconds and their
// differences in percent. No verdict depends on it.
// With a subject in the plan, the percentages compare the subject with each other
// target, as in the report. Without one, they compare each target with the baseline.
func (j *Judgement) isulad(t *table) *page.Section {
	targets, against := names(j.Record.Targets), j.Plan.Subject
	subject := slices.Contains(targets, against)
	if !subject {
		against = j.Baseline
	}
	// Trimmed means have no interval, so the verdict comes from the times.
	set := slices.Clone(t.Set)
	for i := range set {
		set[i].Versus = nil
	}
	j.Plan.Compare(against, pairs(set, against))
	rows, table := set.Parts("op"), page.Names("operation (ms)")
	var fewer []string
	for _, row := range rows {
		name := row.Get("op")
		if t.lanes > 1 {
			name = fmt.Sprintf("%d * %s", t.lanes, name)
		}
		table.Row(page.Words(name))
		for _, cell := range row.Parts("target") {
			if cell[0].N < t.rounds {
				fewer = append(fewer, fmt.Sprintf("%s %s %d", page.Heading(cell.Get("target")), row.Get("op"), cell[0].N))
			}
		}
	}
	for i, name := range targets {
		table.Add(page.Heading(name)+" (avg)", page.Each(rows, func(row *figure.Set) page.Cell {
			return page.Value(row.Part("target", name).Of("trimmed-mean"), milliseconds)
		}))
		if name == against { // repeated in every part of a split table
			table.Columns[i+1].Group = 0
		}
	}
	for i, name := range targets {
		if name == against || against == "" {
			continue
		}
		title := page.Heading(name) + " VS " + page.Heading(against)
		if subject {
			title = "VS " + page.Heading(name)
		}
		table.Add(title, page.Each(rows, func(row *figure.Set) page.Cell {
			cell := row.Part("target", name)
			from, to := row.Part("target", against).Of("trimmed-mean"), cell.Of("trimmed-mean")
			if subject {
				from, to = to, from
			}
			return page.Versus(from, to, compared(cell).Versus)
		}))
		table.Columns[len(table.Columns)-1].Group = table.Columns[i+1].Group // next to the target's own column
	}
	s := &page.Section{
		Title: fmt.Sprintf("%s: mean without the largest and the smallest of %s (iSulad report, 2020)", page.Lanes(t.lanes), page.Amount(t.rounds, "round")),
		Style: term.Bold, Table: table, Detail: !subject,
	}
	if fewer != nil {
		s.Notes = []string{"fewer rounds without a failure: " + strings.Join(fewer, ", ")}
	}
	return s
}

// milliseconds formats whole milliseconds as in the report. Small values get decimals.
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
