package report

import (
	"fmt"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// longestEvent is where the text of an event is cut: a line of a log can be long.
const longestEvent = 100

// waits are the gaps of a target's starts, ranked: how long, whose, between which
// events, and which timer each looks like.
func waits(t *judge.StartupTarget, o Options) *section {
	if len(t.Gaps) == 0 {
		return nil
	}
	s := ofTarget(t, "gaps")
	shown := t.Gaps
	if !o.Verbose && len(shown) > mostGapsShown {
		shown = shown[:mostGapsShown]
		s.notes = []string{fmt.Sprintf("%d more in JSON and CSV, and with --verbose", len(t.Gaps)-mostGapsShown)}
	}
	var items []item
	for i := range shown {
		items = append(items, gapItems(t, &shown[i])...)
	}
	s.lists = []list{{items: items}}
	return s
}

func gapItems(t *judge.StartupTarget, g *judge.StartupGap) []item {
	took := tookCell(g.Took).head
	where := ""
	if g.In != "" {
		where = "in " + heading(g.In)
	}
	cpu := "CPU not known"
	if g.CPU >= 0 {
		cpu = "CPU " + duration(float64(g.CPU)) + " meanwhile"
	}
	others := ""
	if g.Others > 0 {
		others = fmt.Sprintf("%d lines of others meanwhile", g.Others)
		if g.Others == 1 {
			others = "1 line of others meanwhile"
		}
	}
	items := []item{
		{key: took, text: dotted(where, seenIn(t, g), cpu, others, cut(g.Source, longestEvent))},
		{text: eventText(g.After) + " → " + eventText(g.Before)},
	}
	if w := g.Wait; w != nil {
		items[0].style = term.Yellow
		name := "looks like: " + short(term.Clean(known(w.Timer)), longestEvent)
		if w.Why != "" {
			name += "; " + short(term.Clean(w.Why), longestMessage)
		}
		items = append(items, item{text: name})
	}
	return items
}

func seenIn(t *judge.StartupTarget, g *judge.StartupGap) string {
	return fmt.Sprintf("seen in %d/%s", g.Seen, startsOf(max(t.Starts+t.NoEnd, g.Seen)))
}

func eventText(s string) string { return short(term.Clean(known(s)), longestEvent) }
