package startup

import (
	"fmt"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// The default number of starts in the list, and the limits of their phases: their
// number and their minimum share of the median start.
const (
	slowestShown = 5
	phasesShown  = 4
	phaseShare   = 0.05
)

// every returns the list of starts in logs, slowest first, with their phases and the
// percentiles of their duration.
func every(t *Target, slowest int, o page.Options) *page.Section {
	if t.Method != record.MethodLogs || len(t.Every) < 2 {
		return nil
	}
	shown := t.Every
	if n := max(slowest, slowestShown); !o.Verbose && n < len(shown) {
		shown = shown[:n]
	}
	s := ofTarget(t, "all starts, slowest first")
	s.Table = page.Names("start")
	for i := range shown {
		name := page.Cut(page.Known(shown[i].called), page.LongestName)
		s.Table.Row(page.Cell{Head: name, Label: name})
	}
	s.Table.Add("wall", page.Each(shown, func(x *startValues) page.Cell { return page.Words(page.Duration(x.wall)) }))
	added := 0
	for _, p := range t.Phases {
		if p.Share < phaseShare || added == phasesShown {
			continue
		}
		added++
		s.Table.Add(page.Cut(page.Known(p.Name), longestStep), page.Each(shown, func(x *startValues) page.Cell {
			for _, v := range x.phases {
				if v.name == p.Name && v.kind == p.Kind {
					return page.Words(page.Duration(v.took))
				}
			}
			return page.Words(page.None)
		}))
	}
	s.Table.AddText("at", page.Each(shown, func(x *startValues) page.Cell { return page.Words(page.Cut(x.source, page.LongestName)) }))
	walls := make([]float64, len(t.Every))
	for i := range t.Every {
		walls[len(walls)-1-i] = t.Every[i].wall
	}
	text := ""
	for _, p := range []float64{0.9, 0.99} {
		if float64(len(walls))*(1-p) < 1-1e-9 { // p90 needs ten starts, p99 a hundred
			continue
		}
		text += fmt.Sprintf("p%g %s, ", 100*p, page.Duration(stat.Quantile(walls, p)))
	}
	s.Notes = append(s.Notes, text+"max "+page.Duration(t.Every[0].wall))
	if n := len(t.Every) - len(shown); n > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d more with --details", n))
	}
	if t.Starts > len(t.Every) {
		s.Notes = append(s.Notes, fmt.Sprintf("random sample of %d of %d starts, as for all figures", len(t.Every), t.Starts))
	}
	return s
}
