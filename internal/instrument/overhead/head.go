package overhead

import (
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/term"
)

// whole shows what ran where, with which settings.
func whole(v *Judgement, o page.Options) *page.Section {
	rec := v.Record
	s := page.Run(rec, v.Plan.Seed, "", o.Verbose)
	s.Lists[0].Items = append(s.Lists[0].Items, page.Item{
		Key: "phases", Text: page.Dotted(page.Amount(v.Plan.Rounds, "round"), headings(v.Plan.Phases, ", "), "sandboxes "+numbers(v.Plan.Sandboxes, ", "),
			"each held "+page.Duration(float64(v.Plan.Hold)), "sampled every "+page.Duration(float64(v.Plan.Interval)), terms.LimitsText(v.Plan.Limits), page.NodeMemory(rec)),
	})
	return s
}

// titled returns a section of a phase.
func titled(t *Table, what string) *page.Section {
	return &page.Section{Title: t.heading() + ": " + what, Style: term.Bold}
}
