package lifecycle

import (
	"fmt"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// laneRounds gathers how the lanes of batches fared.
type laneRounds struct {
	latencies   []float64 // of all lanes, from each one's own start
	skews       []float64 // last lane's start − first lane's
	parallelism []float64 // Σ latency ÷ makespan
	own         []float64 // tare's own CPU ÷ (makespan × CPUs)
}

func (l *laneRounds) add(b *record.Batch, done record.Stamp, whole bool, cpus int) {
	var latencies []float64
	var first, last int64
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Start != 0 {
			if first == 0 || s.Start < first {
				first = s.Start
			}
			last = max(last, s.Start)
		}
		if d, ok := s.Latency(done); ok {
			latencies = append(latencies, float64(d))
		}
	}
	l.latencies = append(l.latencies, latencies...)
	l.skews = append(l.skews, float64(last-first))
	makespan, ok := span(b, done)
	if !whole || !ok || makespan <= 0 {
		return
	}
	l.parallelism = append(l.parallelism, stat.Parallelism(latencies, makespan))
	l.own = append(l.own, float64(b.OwnCPU)/(makespan*float64(max(cpus, 1))))
}

// laneColumns are what is said of the lanes of a batch, in the order of
// [Cell.Lanes].
var laneColumns = []struct {
	title, quantity, of string
	unit                figure.Unit
	show                func(float64) string
}{
	{"p50", "lane-latency", "p50", figure.Nanoseconds, page.Duration},
	{"p90", "lane-latency", "p90", figure.Nanoseconds, page.Duration},
	{"p99", "lane-latency", "p99", figure.Nanoseconds, page.Duration},
	{"max", "lane-latency", "max", figure.Nanoseconds, page.Duration},
	{"skew", "release-skew", "", figure.Nanoseconds, page.Duration},
	{"parallel", "parallelism", "", figure.Ratio, as("%.1f", 1)},
	{"own CPU", "own-cpu-share", "", figure.Ratio, as("%.1f %%", 100)},
	{"", "release-skew", "max", figure.Nanoseconds, page.Duration},
}

const skewColumn, ownColumn = 4, 6

func as(format string, times float64) func(float64) string {
	return func(v float64) string { return fmt.Sprintf(format, times*v) }
}

// figures are those of laneColumns, none where no lane succeeded.
func (l *laneRounds) figures(labels figure.Labels) []figure.Figure {
	if len(l.latencies) == 0 {
		return nil
	}
	q := stat.Quantiles(l.latencies, 0.5, 0.9, 0.99, 1)
	estimates := []figure.Estimate{
		figure.Exactly(q[0]), figure.Exactly(q[1]), figure.Exactly(q[2]), figure.Exactly(q[3]),
		middle(l.skews), middle(l.parallelism), middle(l.own), figure.Exactly(stat.Quantiles(l.skews, 1)[0]),
	}
	out := make([]figure.Figure, len(laneColumns))
	for i, c := range laneColumns {
		out[i] = about(c.quantity, c.unit, labels)
		if c.of != "" {
			out[i].Labels = labels.With("quantile", c.of)
		}
		out[i].Estimate = estimates[i]
		if c.quantity == "lane-latency" {
			out[i].Estimate.N, out[i].Better = len(l.latencies), figure.Less
		}
	}
	return out
}

// lanes is the table of each lane's own latency beside the makespan.
func lanes(j *Judgement, t *Table) *page.Section {
	s := &page.Section{Title: fmt.Sprintf("%s: latency of each, from its own start", page.Lanes(t.Lanes)), Style: term.Bold}
	s.Table = page.Names("", "target")
	var shown [][]figure.Figure
	for _, row := range t.Rows {
		above := string(row.Op)
		for _, c := range row.Cells {
			if c.Lanes == nil {
				continue
			}
			s.Table.Row(page.Cell{Head: above, Label: string(row.Op)}, page.Words(page.Heading(c.Target)))
			above = ""
			shown = append(shown, c.Lanes)
		}
	}
	for i, column := range laneColumns {
		if column.title != "" {
			s.Table.Add(column.title, page.Each(shown, func(f *[]figure.Figure) page.Cell { return page.Value(&(*f)[i], column.show) }))
		}
	}
	s.Notes = []string{
		"skew: from the first lane's start to the last's; parallel: Σ latency ÷ makespan; own CPU: of tare, in all CPUs' time; medians over rounds",
	}
	s.Draw(lanesCharts(j, t)...)
	return s
}
