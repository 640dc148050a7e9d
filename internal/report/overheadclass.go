package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// classes are the RuntimeClasses to be copied, and what they were made of.
func classes(v *judge.Overhead) *section {
	if len(v.Classes) == 0 {
		return nil
	}
	s := &section{title: "recommended RuntimeClass", style: term.Bold, block: &block{language: "yaml"}}
	if len(v.Classes) > 1 {
		s.title += "es"
	}
	var rules []item
	for i := range v.Classes {
		c := &v.Classes[i]
		key := heading(c.Target)
		for _, rule := range c.Rule {
			rules = append(rules, item{key: key, text: rule})
			key = ""
		}
		if i > 0 {
			s.block.lines = append(s.block.lines, "---")
		}
		yaml := strings.TrimPrefix(strings.TrimSpace(c.YAML), "---\n")
		s.block.lines = append(s.block.lines, strings.Split(yaml, "\n")...)
	}
	if rules != nil {
		s.lists = []list{{items: rules}}
	}
	return s
}

// checked is whether an overhead that is in use is enough.
func checked(c *judge.Check, first bool) *section {
	s := &section{title: fmt.Sprintf("check of cpu %dm, memory %s for %s: ", c.CPU, size(float64(c.Memory)), heading(c.Target)), style: term.Green}
	broken := slices.IndexFunc(c.Phases, func(p judge.CheckPhase) bool { return p.Measured && (!p.MemoryEnough || !p.CPUEnough) })
	if broken < 0 {
		broken = slices.IndexFunc(c.Phases, func(p judge.CheckPhase) bool { return !p.Measured })
	}
	switch {
	case c.Enough:
		s.title += "enough"
	case broken < 0:
		s.title, s.style = s.title+"not enough", term.Red
	default:
		p := &c.Phases[broken]
		why := "not enough, first in"
		if !p.Measured {
			why = "not proven, not measured:"
		}
		s.title, s.style = s.title+fmt.Sprintf("%s %s, %s", why, heading(p.Phase), sandboxesOf(p.Sandboxes)), term.Red
	}
	if len(c.Phases) == 0 {
		return s
	}
	m := &matrix{lead: []term.Column{{Title: "phase"}}}
	for i := range c.Phases {
		p := &c.Phases[i]
		m.rows = append(m.rows, matrixRow{lead: []cell{plain(heading(p.Phase) + ", " + sandboxesOf(p.Sandboxes))}})
	}
	verdict := func(p *judge.CheckPhase, text string, enough bool) cell {
		if !p.Measured {
			return cell{head: "not measured", style: term.Red}
		}
		if !enough {
			return cell{head: text, tail: "✗", style: term.Red}
		}
		return cell{head: text, tail: "✓"}
	}
	m.column("memory MiB", each(c.Phases, func(p *judge.CheckPhase) cell { return verdict(p, mib(p.Memory), p.MemoryEnough) }))
	m.column("CPU m", each(c.Phases, func(p *judge.CheckPhase) cell { return verdict(p, tenths(p.CPU), p.CPUEnough) }))
	s.table = m.spread()
	if first {
		s.notes = []string{"what each sandbox needed beside its workload"}
	}
	return s
}
