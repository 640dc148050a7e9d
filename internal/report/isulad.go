package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// isulad is the table of the iSulad performance report (2020), to stand beside
// its own and those made after it: trimmed means in milliseconds, and their
// differences in percent. It decides nothing.
func isulad(l *judge.Lifecycle, t *judge.Table, subject string) section {
	s := section{
		title: fmt.Sprintf("%s: mean without the largest and the smallest of %s (iSulad report, 2020)", lanesOf(t.Lanes), roundsOf(t.Rounds)),
		style: term.Bold,
		notes: fewerRounds(t),
	}
	pivotName := subject
	if pivotName == "" {
		pivotName = l.Baseline
	}
	pivot := slices.IndexFunc(l.Targets, func(t record.Target) bool { return t.Name == pivotName })
	s.table = &spread{pivot: pivot, build: func(of []int) *grid { return isuladOf(l, t, pivot, subject != "", of) }}
	for i := range l.Targets {
		s.table.order = append(s.table.order, i)
	}
	return s
}

// isuladOf is the table for some targets. The percentages are those of the
// pivot against each other target if it is the subject, as in the report; else
// those of each other target against the pivot.
func isuladOf(l *judge.Lifecycle, t *judge.Table, pivot int, subject bool, of []int) *grid {
	g := &grid{columns: []term.Column{{Title: "operation (ms)"}}}
	var others []int
	for _, i := range of {
		g.columns = append(g.columns, term.Column{Title: heading(l.Targets[i].Name) + " (avg)", Right: true})
		if i != pivot && pivot >= 0 {
			others = append(others, i)
		}
	}
	for _, i := range others {
		title := heading(l.Targets[i].Name) + " VS " + heading(l.Targets[pivot].Name)
		if subject {
			title = "VS " + heading(l.Targets[i].Name)
		}
		g.columns = append(g.columns, term.Column{Title: title, Right: true})
	}
	for _, row := range t.Rows {
		name := string(row.Op)
		if t.Lanes > 1 {
			name = fmt.Sprintf("%d * %s", t.Lanes, row.Op)
		}
		cells := []cell{plain(name)}
		for _, i := range of {
			cells = append(cells, plain(milliseconds(row.Cells[i].Trimmed)))
		}
		for _, i := range others {
			from, to := row.Cells[pivot].Trimmed, row.Cells[i].Trimmed
			if subject {
				from, to = to, from
			}
			cells = append(cells, plain(percentage(from, to)))
		}
		g.rows = append(g.rows, cells)
	}
	return g
}

// milliseconds are whole ones as in the report, with decimals where a whole
// one would say too little.
func milliseconds(ns *float64) string {
	if ns == nil || !finite(*ns) {
		return none
	}
	decimals := 2
	switch ms := *ns / 1e6; {
	case ms >= 9.95:
		decimals = 0
	case ms >= 0.995:
		decimals = 1
	}
	return strconv.FormatFloat(*ns/1e6, 'f', decimals, 64)
}

// percentage takes the means as they are, not as they are printed.
func percentage(from, to *float64) string {
	if from == nil || to == nil {
		return none
	}
	return stat.FormatVersus(*from, *to)
}

// fewerRounds names the means of fewer rounds than the title says.
func fewerRounds(t *judge.Table) []string {
	var out []string
	for _, row := range t.Rows {
		for _, c := range row.Cells {
			if c.Absent == "" && c.Summary.N < t.Rounds {
				out = append(out, fmt.Sprintf("%s %s %d", heading(c.Target), row.Op, c.Summary.N))
			}
		}
	}
	if out == nil {
		return nil
	}
	return []string{"of fewer rounds, those without a failure: " + strings.Join(out, ", ")}
}
