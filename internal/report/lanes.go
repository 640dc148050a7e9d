package report

import (
	"fmt"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// laneColumns are what is said of the lanes of a batch.
var laneColumns = []struct {
	title string
	show  func(*judge.BatchFacts) string
}{
	{"p50", func(b *judge.BatchFacts) string { return duration(b.P50) }},
	{"p90", func(b *judge.BatchFacts) string { return duration(b.P90) }},
	{"p99", func(b *judge.BatchFacts) string { return duration(b.P99) }},
	{"max", func(b *judge.BatchFacts) string { return duration(b.Max) }},
	{"skew", func(b *judge.BatchFacts) string { return duration(b.Skew) }},
	{"parallel", func(b *judge.BatchFacts) string { return ratio(b.Parallelism, "%.1f") }},
	{"own CPU", func(b *judge.BatchFacts) string { return ratio(100*b.OwnShare, "%.1f %%") }},
}

func ratio(v float64, format string) string {
	if !finite(v) {
		return none
	}
	return fmt.Sprintf(format, v)
}

// lanes is the table of each lane's own latency beside the makespan.
func lanes(t *judge.Table) section {
	s := section{title: fmt.Sprintf("%s: latency of each, from its own start", lanesOf(t.Lanes)), style: term.Bold}
	s.table = &spread{pivot: -1, build: func(of []int) *grid { return lanesOfColumns(t, of) }}
	for i := range laneColumns {
		s.table.order = append(s.table.order, i)
	}
	s.notes = []string{
		"skew: from the first lane's start to the last's; parallel: Σ latency ÷ makespan; own CPU: of tare, in all CPUs' time; medians over rounds",
	}
	return s
}

func lanesOfColumns(t *judge.Table, of []int) *grid {
	g := &grid{columns: []term.Column{{}, {Title: "target"}}}
	for _, i := range of {
		g.columns = append(g.columns, term.Column{Title: laneColumns[i].title, Right: true})
	}
	for _, row := range t.Rows {
		above := ""
		for _, c := range row.Cells {
			if c.Batch == nil {
				continue
			}
			cells := []cell{{head: string(row.Op), label: string(row.Op)}, plain(heading(c.Target))}
			if above == string(row.Op) {
				cells[0].head = ""
			}
			above = string(row.Op)
			for _, i := range of {
				cells = append(cells, plain(laneColumns[i].show(c.Batch)))
			}
			g.rows = append(g.rows, cells)
		}
	}
	return g
}
