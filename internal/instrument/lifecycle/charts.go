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

// lanesCharts draws the distribution of the lanes' latencies. For each operation it
// also draws the batch with the median makespan, lane by lane.
func (j *Judgement) lanesCharts(t *table) []*page.Chart {
	n := page.Lanes(t.lanes)
	spread := &page.Chart{
		Name: fmt.Sprintf("lanes-%d", t.lanes), Title: n + ": latency of each, from its own start", Kind: page.Cumulative,
		Caption: "Which part of the lanes of all rounds had completed an operation how long after their own start.",
		X:       page.Axis{Title: "latency", Unit: figure.Nanoseconds}, Y: page.Axis{Title: "part of the lanes", Unit: figure.Ratio},
	}
	all := []*page.Chart{spread}
	for _, row := range t.Parts("op") {
		op := row.Get("op")
		batch := &page.Chart{
			Name: fmt.Sprintf("batch-%s-%d", op, t.lanes), Title: fmt.Sprintf("%s: %s, the batch of the median makespan", n, op), Kind: page.Gantt,
			Caption: fmt.Sprintf("Each lane of one batch of %s on each target: when it began after the release of all, and when its operation was complete.", op),
			X:       page.Axis{Title: "since the release", Unit: figure.Nanoseconds}, Y: page.Axis{Title: "lanes in the order of their start"},
		}
		if t.lanes > mostLanes {
			batch.Caption += fmt.Sprintf(" Of the %d lanes %d are drawn.", t.lanes, mostLanes)
		}
		for _, cell := range row.Parts("target") {
			time, off, median := &cell[0], math.Inf(1), (*record.Batch)(nil)
			batches := measured(j.Record, t.lanes, cell.Get("target"), op)
			done := timesOf(j.target(cell.Get("target")), row.Get("op"), batches).done()
			latencies, _, _, _ := fared(batches, done, 1)
			spread.Distribution(page.At(op, "", cell.Get("target")), latencies)
			for _, b := range batches {
				makespan, ok := span(b, done)
				if _, counts := time.Values()[b.Round]; counts && ok && b.Source == "" && math.Abs(makespan-time.Value) < off {
					off, median = math.Abs(makespan-time.Value), b
				}
			}
			if median != nil {
				drawBatch(batch, median, done)
			}
		}
		all = append(all, batch)
	}
	return all
}

// mostLanes is the maximum number of lanes drawn per batch.
const mostLanes = 100

// drawBatch adds the lanes of a batch, ordered by start.
func drawBatch(c *page.Chart, b *record.Batch, done record.Stamp) {
	lanes := slices.Clone(b.Samples)
	slices.SortStableFunc(lanes, func(a, b record.Sample) int { return cmp.Compare(a.Start, b.Start) })
	rows := min(len(lanes), mostLanes)
	for i := range rows {
		s := &lanes[i*len(lanes)/rows]
		ended, _ := s.Time(done) // present in every lane, since the batch has a makespan
		at := page.At(b.Target, strconv.Itoa(i+1), "waiting")
		at.X, at.X2 = 0, float64(s.Start-b.Released)
		at.Text = fmt.Sprintf("lane %d", s.Lane)
		c.Data = append(c.Data, at)
		at.Series, at.X, at.X2 = "under way", at.X2, float64(ended-b.Released)
		c.Data = append(c.Data, at)
	}
}
