package overhead

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// head says what ran where, and how it was held and read.
func head(v *Judgement, o page.Options) []string {
	rec := v.Record
	counts := make([]string, len(v.Plan.Sandboxes))
	for i, n := range v.Plan.Sandboxes {
		counts[i] = strconv.Itoa(n)
	}
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
		page.Dotted(page.Amount(v.Plan.Rounds, "round"), "phases "+strings.Join(phases, ", "), "sandboxes "+strings.Join(counts, ", "),
			"each held "+page.Duration(float64(v.Plan.Hold)), "sampled every "+page.Duration(float64(v.Plan.Interval)), limits(v)),
	}
	if o.Verbose {
		lines = append(lines, page.Surroundings(&rec.Header))
	}
	return lines
}

func limits(v *Judgement) string {
	l := &v.Plan.Limits
	var parts []string
	if l.CPU > 0 {
		parts = append(parts, strconv.FormatFloat(l.CPU, 'g', -1, 64)+" CPU")
	}
	if l.Memory > 0 {
		parts = append(parts, "memory "+page.Size(float64(l.Memory)))
	}
	if l.Pids > 0 {
		parts = append(parts, fmt.Sprintf("%d tasks", l.Pids))
	}
	if l.CPUShares > 0 {
		parts = append(parts, fmt.Sprintf("%d CPU shares", l.CPUShares))
	}
	if parts == nil {
		return "no limits"
	}
	return "limits: " + strings.Join(parts, ", ")
}

// titled is a section of a phase.
func titled(t *Table, what string) *page.Section {
	return &page.Section{Title: phaseName(t) + ": " + what, Style: term.Bold}
}
