package startup

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
)

// timesChart returns the data of the first table as a chart.
func timesChart(j *Judgement) *page.Chart {
	c := &page.Chart{
		Name: "starts", Title: "Starts", Kind: page.Intervals, Caption: "How long a start takes on each target" + page.WithRounds,
		X: page.Axis{Title: "from the call"}, Y: page.Axis{Title: "time", Unit: figure.Nanoseconds},
	}
	for i := range j.Targets {
		t := &j.Targets[i]
		name := page.Known(t.Target)
		c.Figure("", "to its return", name, &t.Wall)
		c.Figure("", "to the first instruction", name, &t.First)
	}
	return c
}

// phasesDrawn is the maximum number of parts with their own color.
const phasesDrawn = 9

// partsChart returns the parts of the drawn start of each target. It shows one start
// because its parts sum to its wall time. Medians of parts would not.
func partsChart(j *Judgement) *page.Chart {
	c := &page.Chart{
		Name: "parts", Title: "Where the time of a start goes", Kind: page.Stacked,
		Caption: "Components of the start closest to the median, or of the slowest start if requested, for each target. They sum to its wall time.",
		X:       page.Axis{Title: "target"}, Y: page.Axis{Title: "time", Unit: figure.Nanoseconds},
	}
	for i := range j.Targets {
		t := &j.Targets[i]
		if t.Drawn == nil || t.Drawn.Start == nil || t.Drawn.Start.Ended == 0 {
			continue
		}
		for _, p := range together(t.Drawn.Parts) {
			c.Add(page.At("", page.Known(t.Target), page.Cut(page.Known(p.name), longestStep)), figure.Exactly(p.took), nil)
		}
	}
	c.Fold(phasesDrawn)
	return c
}
