package startup

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
)

// timesChart is the first table as a picture.
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

// phasesDrawn is how many parts have a colour of their own.
const phasesDrawn = 9

// partsChart is what was at work in the start of each target that is drawn: the parts
// of one start add up to its wall time, and medians would not.
func partsChart(j *Judgement) *page.Chart {
	c := &page.Chart{
		Name: "parts", Title: "Where the time of a start goes", Kind: page.Stacked,
		Caption: "What was at work in the start of each target that is closest to the median, or the slowest where those were asked for; the parts add up to its wall time.",
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
