package overhead

import (
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/term"
)

// head says what ran where, and how it was held and read.
func head(v *Judgement, o page.Options) []string {
	rec := v.Record
	phases := make([]string, len(v.Plan.Phases))
	for i, name := range v.Plan.Phases {
		phases[i] = page.Heading(name)
	}
	memory := ""
	if n := rec.Header.Environment.Memory; n > 0 {
		memory = "memory " + page.Size(float64(n))
	}
	lines := []string{
		page.Dotted(page.Ran(rec, v.Plan.Seed), memory),
		page.Targets(v.Targets, ""),
		page.Dotted(page.Amount(v.Plan.Rounds, "round"), "phases "+strings.Join(phases, ", "), "sandboxes "+numbers(v.Plan.Sandboxes, ", "),
			"each held "+page.Duration(float64(v.Plan.Hold)), "sampled every "+page.Duration(float64(v.Plan.Interval)), terms.LimitsText(v.Plan.Limits)),
	}
	lines = append(lines, page.Workload(rec)...)
	if o.Verbose {
		lines = append(lines, page.Surroundings(rec)...)
	}
	return lines
}

// titled is a section of a phase.
func titled(t *Table, what string) *page.Section {
	return &page.Section{Title: phaseName(t) + ": " + what, Style: term.Bold}
}
