package overhead

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Ratios are how many times the baseline's the figures of a phase are, whether or
// not the host was weighed.
type Ratios struct {
	Table *Table
	Base  string
	Of    []figure.Figure // by quantity and then by target, those that are known
	// Without are the ratios of rounds that were left out: of less than nothing, or to
	// nothing or less.
	Without int
}

// divided are the quantities of which there are ratios.
var divided = []struct {
	quantity, title string
	of              func(*ledger.Ledger) (float64, bool)
}{
	{"memory-ratio", "memory", func(l *ledger.Ledger) (float64, bool) { return float64(l.Sum), l.Complete }},
	{"charged-ratio", "charged, with page cache", func(l *ledger.Ledger) (sum float64, known bool) {
		for i := range l.Groups {
			if g := &l.Groups[i]; g.Charge != record.ChargeShared {
				sum, known = sum+float64(g.Usage), true
			}
		}
		return sum, known
	}},
	{"cpu-ratio", "CPU", func(l *ledger.Ledger) (float64, bool) {
		cpus, least := l.CPU()
		return cpus, !least
	}},
}

func (j *judging) ratios() {
	wanted := ""
	if at := slices.IndexFunc(j.Targets, func(t record.Target) bool { return t.Kind != "host" && t.Kind != "floor" && page.Kata(&t) == "" }); at >= 0 {
		wanted = j.Targets[at].Name // overhead is told beside containers that share the kernel
	}
	base := instrument.Baseline(wanted, j.Targets)
	for i := range j.Tables {
		t := &j.Tables[i]
		under := t.of(base)
		if under == nil {
			continue
		}
		r := Ratios{Table: t, Base: base}
		for _, d := range divided {
			below := byRound(under, d.of)
			for k := range t.Cells {
				if t.Cells[k].Target == base {
					continue
				}
				values := stat.Rounds{}
				for round, v := range byRound(&t.Cells[k], d.of) {
					switch of, there := below[round]; {
					case !there:
					case of > 0 && v >= 0:
						values[round] = v / of
					default:
						r.Without++
					}
				}
				if len(values) > 0 {
					labels := figure.Of("target", t.Cells[k].Target, "phase", t.Phase, "sandboxes", strconv.Itoa(t.Sandboxes), "base", base)
					r.Of = append(r.Of, Quantities.Over(d.quantity, labels, values))
				}
			}
		}
		if r.Of != nil {
			j.Ratios = append(j.Ratios, r)
		}
	}
}

// byRound is what the books of each round say.
func byRound(c *Cell, of func(*ledger.Ledger) (float64, bool)) stat.Rounds {
	out := stat.Rounds{}
	for _, p := range c.counts {
		if v, known := of(&p.ledger); known {
			out[p.visit.Round] = v
		}
	}
	return out
}

// ratiosPage has a row for each phase and quantity, and a column for each target.
func ratiosPage(v *Judgement) *page.Section {
	if len(v.Ratios) == 0 {
		return nil
	}
	base := v.Ratios[0].Base
	m := page.Names("")
	var rows []figure.Labels
	var quantities []string
	for i := range v.Ratios {
		for _, d := range divided {
			m.Row(page.Words(phaseName(v.Ratios[i].Table) + ": " + d.title))
			rows, quantities = append(rows, v.Ratios[i].Of[0].Labels), append(quantities, d.quantity)
		}
	}
	for _, target := range v.Targets {
		if target.Name == base {
			continue
		}
		cells := make([]page.Cell, len(rows))
		for i := range rows {
			cells[i] = page.Words(page.None)
			f := figure.Find(v.Ratios[i/len(divided)].Of, quantities[i], "target", target.Name)
			if f.Known() {
				cells[i] = page.Cell{Head: page.Rounded(f.Estimate, page.Significant), Tail: page.Between(f.Estimate, page.Significant), Figure: &f}
			}
		}
		m.Add(page.Heading(target.Name)+" ÷", cells)
	}
	notes := []string{"target ÷ " + page.Heading(base) + " in the same round, the median of the rounds, and its 95 % interval; charged: what the sandboxes' own cgroups are charged for, as the kernel and kubectl top count"}
	without := 0
	for i := range v.Ratios {
		without += v.Ratios[i].Without
	}
	if without > 0 {
		notes = append(notes, fmt.Sprintf("left out: %d of these ratios in single rounds, where the target's was less than 0 or the base's not above it", without))
	}
	return &page.Section{Title: "ratio to " + page.Heading(base), Style: term.Bold, Table: m, Notes: notes}
}
