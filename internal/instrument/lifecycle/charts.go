package lifecycle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/record"
)

// mediansChart is the table of medians as a picture.
func mediansChart(t *Table) *page.Chart {
	name := "latency"
	if t.Lanes > 1 {
		name = "makespan"
	}
	c := &page.Chart{
		Name: fmt.Sprintf("%s-%d", name, t.Lanes), Title: page.Lanes(t.Lanes) + ": " + name, Kind: page.Intervals,
		Caption: "The " + name + " of each operation on each target" + page.WithRounds,
		X:       page.Axis{Title: "operation"}, Y: page.Axis{Title: name, Unit: figure.Nanoseconds},
	}
	for _, row := range t.Rows {
		for i := range row.Cells {
			c.Figure("", string(row.Op), row.Cells[i].Target, &row.Cells[i].Time)
		}
	}
	return c
}

// against is the table's comparisons as a picture.
func against(j *Judgement, t *Table) *page.Chart {
	rows := figure.Rows{At: slices.IndexFunc(j.Targets, func(t record.Target) bool { return t.Name == j.Baseline })}
	for _, target := range j.Targets {
		rows.Names = append(rows.Names, target.Name)
	}
	for _, row := range t.Rows {
		of := make([]*figure.Figure, len(row.Cells))
		for i := range row.Cells {
			of[i] = row.Cells[i].compared()
		}
		rows.Rows = append(rows.Rows, figure.Row{Name: string(row.Op), Of: of})
	}
	return page.Against(fmt.Sprintf("compared-%d", t.Lanes), rows)
}

// lanesCharts are how the lanes' own latencies are distributed, and of each operation
// the batch of the median makespan, lane by lane.
func lanesCharts(j *Judgement, t *Table) []*page.Chart {
	n := page.Lanes(t.Lanes)
	spread := &page.Chart{
		Name: fmt.Sprintf("lanes-%d", t.Lanes), Title: n + ": latency of each, from its own start", Kind: page.Cumulative,
		Caption: "Which part of the lanes of all rounds had completed an operation how long after their own start.",
		X:       page.Axis{Title: "latency", Unit: figure.Nanoseconds}, Y: page.Axis{Title: "part of the lanes", Unit: figure.Ratio},
	}
	all := []*page.Chart{spread}
	for _, row := range t.Rows {
		batch := &page.Chart{
			Name: fmt.Sprintf("batch-%s-%d", row.Op, t.Lanes), Title: fmt.Sprintf("%s: %s, the batch of the median makespan", n, row.Op), Kind: page.Gantt,
			Caption: fmt.Sprintf("Each lane of one batch of %s on each target: when it began after the release of all, and when its operation was complete.", row.Op),
			X:       page.Axis{Title: "since the release", Unit: figure.Nanoseconds}, Y: page.Axis{Title: "lanes in the order of their start"},
		}
		if t.Lanes > mostLanes {
			batch.Caption += fmt.Sprintf(" Of the %d lanes %d are drawn.", t.Lanes, mostLanes)
		}
		for i := range row.Cells {
			done := row.Cells[i].Done
			latencies, median := laneLatencies(j.Record, &row.Cells[i], string(row.Op), t.Lanes, done)
			spread.Distribution(page.At(string(row.Op), "", row.Cells[i].Target), latencies)
			if median != nil {
				drawBatch(batch, median, done)
			}
		}
		all = append(all, batch)
	}
	return all
}

// laneLatencies are those of all measured batches of a cell, and the batch whose
// makespan is closest to the median.
func laneLatencies(rec *record.Record, c *Cell, op string, lanes int, done record.Stamp) (latencies []float64, median *record.Batch) {
	off := math.Inf(1)
	for i := range rec.Batches {
		b := &rec.Batches[i]
		if b.Phase != record.PhaseMeasure || b.Lanes != lanes || b.Target != c.Target || b.Op != op {
			continue
		}
		for k := range b.Samples {
			if d, ok := b.Samples[k].Latency(done); ok {
				latencies = append(latencies, float64(d))
			}
		}
		if slices.ContainsFunc(c.Time.Rounds, func(r figure.Round) bool { return r.Round == b.Round }) && b.Source == "" {
			if makespan, ok := span(b, done); ok && math.Abs(makespan-c.Time.Value) < off {
				off, median = math.Abs(makespan-c.Time.Value), b
			}
		}
	}
	return latencies, median
}

// mostLanes is how many of one batch are drawn.
const mostLanes = 100

// drawBatch appends the lanes in the order in which they began.
func drawBatch(c *page.Chart, b *record.Batch, done record.Stamp) {
	lanes := slices.Clone(b.Samples)
	slices.SortStableFunc(lanes, func(a, b record.Sample) int { return cmp.Compare(a.Start, b.Start) })
	rows := min(len(lanes), mostLanes)
	for i := range rows {
		s := &lanes[i*len(lanes)/rows]
		ended, _ := s.Time(done) // every lane of a batch that has a makespan has it
		at := page.At(b.Target, strconv.Itoa(i+1), "waiting")
		at.X, at.X2 = 0, float64(s.Start-b.Released)
		at.Text = fmt.Sprintf("lane %d", s.Lane)
		c.Data = append(c.Data, at)
		at.Series, at.X, at.X2 = "under way", at.X2, float64(ended-b.Released)
		c.Data = append(c.Data, at)
	}
}
