package overhead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// classes are the RuntimeClasses to be copied, and what they were made of.
func classes(v *Judgement) *page.Section {
	if len(v.Classes) == 0 {
		return nil
	}
	s := &page.Section{Title: "recommended RuntimeClass", Style: term.Bold, Block: &page.Block{Language: "yaml"}}
	if len(v.Classes) > 1 {
		s.Title += "es"
	}
	var rules []page.Item
	for i := range v.Classes {
		c := &v.Classes[i]
		key := page.Heading(c.Target)
		for _, rule := range c.Rule {
			rules = append(rules, page.Item{Key: key, Text: rule})
			key = ""
		}
		if i > 0 {
			s.Block.Lines = append(s.Block.Lines, "---")
		}
		yaml := strings.TrimPrefix(strings.TrimSpace(c.YAML), "---\n")
		s.Block.Lines = append(s.Block.Lines, strings.Split(yaml, "\n")...)
	}
	if rules != nil {
		s.Lists = []page.List{{Items: rules}}
	}
	return s
}

// checked is whether an overhead that is in use is enough.
func checked(c *Check, first bool) *page.Section {
	s := &page.Section{Title: fmt.Sprintf("check of cpu %dm, memory %s for %s: ", c.CPU, page.Size(float64(c.Memory)), page.Heading(c.Target)), Style: term.Green}
	broken := slices.IndexFunc(c.Phases, func(p CheckPhase) bool { return p.Measured && (!p.MemoryEnough || !p.CPUEnough) })
	if broken < 0 {
		broken = slices.IndexFunc(c.Phases, func(p CheckPhase) bool { return !p.Measured })
	}
	switch {
	case c.Enough:
		s.Title += "enough"
	case broken < 0:
		s.Title, s.Style = s.Title+"not enough", term.Red
	default:
		p := &c.Phases[broken]
		why := "not enough, first in"
		if !p.Measured {
			why = "not proven, not measured:"
		}
		s.Title, s.Style = s.Title+fmt.Sprintf("%s %s, %s", why, page.Heading(p.Phase), page.Sandboxes(p.Sandboxes)), term.Red
	}
	if len(c.Phases) == 0 {
		return s
	}
	m := &page.Table{Columns: []page.Column{{Title: "phase"}}}
	for i := range c.Phases {
		p := &c.Phases[i]
		m.Row(page.Words(page.Heading(p.Phase) + ", " + page.Sandboxes(p.Sandboxes)))
	}
	verdict := func(p *CheckPhase, text string, enough bool) page.Cell {
		if !p.Measured {
			return page.Cell{Head: "not measured", Style: term.Red}
		}
		if !enough {
			return page.Cell{Head: text, Tail: "✗", Style: term.Red}
		}
		return page.Cell{Head: text, Tail: "✓"}
	}
	m.Add("memory MiB", page.Each(c.Phases, func(p *CheckPhase) page.Cell { return verdict(p, page.MiB(p.Memory), p.MemoryEnough) }))
	m.Add("CPU m", page.Each(c.Phases, func(p *CheckPhase) page.Cell { return verdict(p, page.Tenths(p.CPU), p.CPUEnough) }))
	s.Table = m
	if first {
		s.Notes = []string{"what each sandbox needed beside its workload"}
	}
	return s
}
