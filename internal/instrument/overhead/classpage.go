package overhead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/term"
)

// classes shows the RuntimeClasses to copy, and their rules.
func classes(v *Judgement) *page.Section {
	if len(v.Classes) == 0 {
		return nil
	}
	s := &page.Section{Title: "recommended overhead", Style: term.Bold}
	var yaml []string
	var rules []page.Item
	for c := range ledger.Each(v.Classes) {
		key := page.Heading(c.Target)
		for _, rule := range c.Rule {
			rules = append(rules, page.Item{Key: key, Text: rule})
			key = ""
		}
		if c.YAML != "" {
			yaml = append(yaml, strings.TrimSpace(c.YAML))
		}
	}
	if yaml != nil {
		s.Title = "recommended RuntimeClass"
		if len(v.Classes) > 1 {
			s.Title += "es"
		}
		s.Block = &page.Block{Language: "yaml", Lines: strings.Split(strings.Join(yaml, "\n---\n"), "\n")}
	}
	if rules != nil {
		s.Lists = []page.List{{Items: rules}}
	}
	return s
}

// checked shows whether an existing overhead is sufficient.
func checked(c *Check, first bool) *page.Section {
	s := &page.Section{Title: fmt.Sprintf("check of cpu %dm, memory %s for %s: %s", c.CPU, page.Size(float64(c.Memory)), page.Heading(c.Target), c.Answer), Style: term.Green}
	if c.Answer != Enough {
		s.Style = term.Red
		if i := slices.IndexFunc(c.Phases, func(p CheckPhase) bool { return p.MemoryAnswer.and(p.CPUAnswer) == c.Answer }); i >= 0 {
			s.Title += ", first in " + c.Phases[i].heading()
		}
	}
	if len(c.Phases) == 0 {
		return s
	}
	m := page.Names("phase")
	for p := range ledger.Each(c.Phases) {
		m.Row(page.Words(p.heading()))
	}
	cell := func(p *CheckPhase, text string, answer Answer) page.Cell {
		switch {
		case p.Rounds == 0:
			return page.Cell{Head: "not measured", Style: term.Yellow}
		case answer == NotShown:
			return page.Cell{Head: text, Tail: "?", Style: term.Yellow}
		case answer == NotEnough:
			return page.Cell{Head: text, Tail: "✗", Style: term.Red}
		}
		return page.Cell{Head: text, Tail: "✓"}
	}
	m.Add("memory MiB", page.Each(c.Phases, func(p *CheckPhase) page.Cell { return cell(p, page.MiB(p.Memory), p.MemoryAnswer) }))
	m.Add("CPU m", page.Each(c.Phases, func(p *CheckPhase) page.Cell { return cell(p, page.Tenths(p.CPU), p.CPUAnswer) }))
	m.Add("rounds", page.Each(c.Phases, func(p *CheckPhase) page.Cell { return page.Words(page.Count(float64(p.Rounds))) }))
	s.Table = m
	if first {
		s.Notes = []string{"maximum of a sandbox beyond its workload over all rounds; ? not shown: the phase is too short for CPU, CPU is not separable from the guest's, or unexplained memory would exceed the overhead"}
	}
	return s
}
