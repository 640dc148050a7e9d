package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// overheadHead says what ran where, and how it was held and read.
func overheadHead(rec *record.Record, v *judge.Overhead, o Options) []string {
	env := &rec.Header.Environment
	counts := make([]string, len(v.Plan.Sandboxes))
	for i, n := range v.Plan.Sandboxes {
		counts[i] = strconv.Itoa(n)
	}
	phases := make([]string, len(v.Plan.Phases))
	for i, name := range v.Plan.Phases {
		phases[i] = heading(name)
	}
	memory := ""
	if env.Memory > 0 {
		memory = "memory " + size(float64(env.Memory))
	}
	lines := []string{
		dotted(ran(rec, v.Plan.Seed), memory),
		targets(v.Targets, ""),
		dotted(roundsOf(v.Plan.Rounds), "phases "+strings.Join(phases, ", "), "sandboxes "+strings.Join(counts, ", "),
			"each held "+duration(float64(v.Plan.Hold)), "sampled every "+duration(float64(v.Plan.Interval)), limits(v.Plan.Limits)),
	}
	if o.Verbose {
		lines = append(lines, surroundings(&rec.Header))
	}
	return lines
}

func limits(l subject.Limits) string {
	var parts []string
	if l.CPU > 0 {
		parts = append(parts, strconv.FormatFloat(l.CPU, 'g', -1, 64)+" CPU")
	}
	if l.Memory > 0 {
		parts = append(parts, "memory "+size(float64(l.Memory)))
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
func titled(t *judge.OverheadTable, what string) *section {
	return &section{title: phaseName(t) + ": " + what, style: term.Bold}
}
