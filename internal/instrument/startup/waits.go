package startup

import (
	"fmt"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// longestEvent is the maximum length of an event's text.
const longestEvent = 100

// waits returns the section that ranks the gaps of a target's starts. Each gap has its
// duration, owner, surrounding events and the timer it resembles.
func waits(t *Target, o page.Options) *page.Section {
	if len(t.Gaps) == 0 {
		return nil
	}
	s := ofTarget(t, "gaps")
	shown := t.Gaps
	if !o.Verbose && len(shown) > maxGapsShown {
		shown = shown[:maxGapsShown]
		s.Notes = []string{fmt.Sprintf("%d more in JSON and CSV, and with --details", len(t.Gaps)-maxGapsShown)}
	}
	var items []page.Item
	for i := range shown {
		items = append(items, gapItems(t, &shown[i])...)
	}
	s.Lists = []page.List{{Items: items}}
	return s
}

func gapItems(t *Target, g *Gap) []page.Item {
	took := tookCell(&g.Took).Head
	where := ""
	if g.In != "" {
		where = "in " + page.Heading(g.In)
	}
	cpu := "CPU unknown"
	if g.CPU >= 0 {
		cpu = "CPU " + page.Duration(float64(g.CPU)) + " meanwhile"
	}
	others := ""
	if g.Others > 0 {
		others = page.Amount(g.Others, "line") + " by others meanwhile"
	}
	items := []page.Item{
		{Key: took, Text: page.Dotted(where, seenIn(t, g), cpu, others, page.Cut(g.Source, longestEvent))},
		{Text: eventText(g.After) + " → " + eventText(g.Before)},
	}
	if w := g.Wait; w != nil {
		items[0].Style = term.Yellow
		name := "looks like: " + page.Short(term.Clean(page.Known(w.Timer)), longestEvent)
		if w.Why != "" {
			name += "; " + page.Short(term.Clean(w.Why), page.LongestMessage)
		}
		items = append(items, page.Item{Text: name})
	}
	return items
}

func seenIn(t *Target, g *Gap) string {
	return fmt.Sprintf("seen in %d/%s", g.Seen, page.Amount(max(t.Starts+t.NoEnd, g.Seen), "start"))
}

func eventText(s string) string { return page.Short(term.Clean(page.Known(s)), longestEvent) }
