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

// divided lists the quantities with ratios.
var divided = []struct {
	quantity, title string
	of              func(*ledger.Ledger) (float64, bool)
}{
	{"memory-ratio", "memory", func(l *ledger.Ledger) (float64, bool) { return float64(l.Sum), l.Complete }},
	{"charged-ratio", "charged, with page cache", func(l *ledger.Ledger) (float64, bool) {
		pod, over := groupOf(l, record.ChargePod), groupOf(l, record.ChargeOverhead)
		return float64(pod.Usage + over.Usage), pod.Count+over.Count > 0
	}},
	{"cpu-ratio", "CPU", func(l *ledger.Ledger) (float64, bool) {
		cpus, least := l.CPU()
		return cpus, !least
	}},
}

// ratios computes the figures of each phase relative to the baseline, even without the host.
func (j *Judgement) ratios() {
	wanted := ""
	if at := slices.IndexFunc(j.Targets, func(t record.Target) bool { return t.Kind != "host" && t.Kind != "floor" && page.Kata(&t) == "" }); at >= 0 {
		wanted = j.Targets[at].Name // overhead is relative to containers that share the kernel
	}
	base := instrument.Baseline(wanted, j.Targets)
	for t := range ledger.Each(j.Tables) {
		under := t.of(base)
		if under == nil {
			continue
		}
		for _, d := range divided {
			below := byRound(under, d.of)
			for c := range ledger.Each(t.Cells) {
				if c.Target == base {
					continue
				}
				values := stat.Rounds{}
				for round, v := range byRound(c, d.of) {
					switch of, there := below[round]; {
					case !there:
					case of > 0 && v >= 0:
						values[round] = v / of
					default:
						j.withoutRatio++
					}
				}
				if len(values) > 0 {
					j.Ratios = append(j.Ratios, Quantities.Over(d.quantity, c.labels(c.Target, "base", base), values))
				}
			}
		}
	}
}

// byRound returns a value of each round's ledger.
func byRound(c *Cell, of func(*ledger.Ledger) (float64, bool)) stat.Rounds {
	out := stat.Rounds{}
	for _, p := range c.counts {
		if v, known := of(&p.Ledger); known {
			out[p.Visit.Round] = v
		}
	}
	return out
}

// ratiosPage has a row per phase and quantity, and a column per target.
func ratiosPage(v *Judgement) *page.Section {
	if len(v.Ratios) == 0 {
		return nil
	}
	base, m := v.Ratios.Get("base"), page.Names("")
	var rows []figure.Set
	for _, part := range v.Ratios.Parts("phase", "sandboxes") {
		n, _ := strconv.Atoi(part.Get("sandboxes"))
		for _, d := range divided {
			m.Row(page.Words(Step{part.Get("phase"), n}.heading() + ": " + d.title))
			rows = append(rows, part)
		}
	}
	for _, target := range v.Targets {
		if target.Name == base {
			continue
		}
		cells := make([]page.Cell, len(rows))
		for i := range rows {
			f := rows[i].Of(divided[i%len(divided)].quantity, "target", target.Name)
			cells[i] = page.Value(f, page.Significant)
			cells[i].Tail = page.Between(f.Estimate, page.Significant)
		}
		m.Add(page.Heading(target.Name)+" ÷", cells)
	}
	notes := lines{"target ÷ " + page.Heading(base) + " in the same round, the median of the rounds, and its 95 % interval; charged: charge of the sandboxes' own cgroups, as counted by the kernel and kubectl top"}
	notes.addIf(v.withoutRatio > 0, fmt.Sprintf("left out: %d ratios of single rounds, with a target below 0 or a base of 0 or less", v.withoutRatio))
	return &page.Section{Title: "ratio to " + page.Heading(base), Style: term.Bold, Table: m, Notes: notes}
}
