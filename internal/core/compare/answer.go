package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
)

// mostNamed are the figures that an answer names.
const mostNamed = 3

// answer is how each column compares with the first: the largest differences by name, and
// how many figures are better, worse, the same and without a verdict.
func (c *Comparison) answer() (out []string) {
	if len(c.Tables) == 0 {
		return []string{"Nothing of these records can be compared."}
	}
	for i, name := range c.Tables[0].Columns[1:] {
		var differ []*figure.Figure
		better, worse, same, open := 0, 0, 0, 0
		for _, t := range c.Tables {
			for _, row := range t.Rows {
				f := row.Of[i+1]
				if f == nil || f.Versus == nil {
					continue
				}
				switch word(f).Head {
				case "better":
					differ, better = append(differ, f), better+1
				case "worse":
					differ, worse = append(differ, f), worse+1
				case string(stat.Different): // of which neither more nor less is better
					differ = append(differ, f)
				case string(stat.Same):
					same++
				default:
					open++
				}
			}
		}
		text := fmt.Sprintf("%s against %s: %d better, %d worse, %d the same, %d without a verdict", page.Heading(name), page.Heading(c.Tables[0].Columns[0]), better, worse, same, open)
		if n := len(differ) - better - worse; n > 0 {
			text += fmt.Sprintf(", %d otherwise different", n)
		}
		if named := largest(differ); named != "" {
			text += "; largest: " + named
		} else if open > 0 {
			text += "; " + c.Tables[0].headline(i+1)
		}
		out = append(out, strings.TrimSuffix(text, "; ")+".")
	}
	return out
}

// largest names the figures that differ most.
func largest(all []*figure.Figure) string {
	size := func(f *figure.Figure) float64 { return math.Abs(math.Log1p(max(f.Versus.Shift.Value, -0.999))) }
	slices.SortStableFunc(all, func(a, b *figure.Figure) int { return cmp.Compare(size(b), size(a)) })
	var parts []string
	for _, f := range all[:min(len(all), mostNamed)] {
		parts = append(parts, named(f))
	}
	return strings.Join(parts, ", ")
}

// headline names figures of a column that a reader asks for first.
func (t *Table) headline(column int) string {
	var parts []string
	for _, row := range t.Rows {
		f := row.Of[column]
		if f != nil && f.Versus != nil && len(parts) < mostNamed && (f.Labels.Get("op") == "" || f.Labels.Get("op") == "run") && f.Labels.Get("target") != "host" {
			parts = append(parts, named(f))
		}
	}
	return strings.Join(parts, ", ")
}

// named is a figure in words with its shift: "run of crun +69 % [+29, +126]".
func named(f *figure.Figure) string {
	name := f.Quantity
	if op := f.Labels.Get("op"); op != "" {
		name = op
		if stamp := f.Labels.Get("stamp"); stamp != "" {
			name += " until " + stamp
		}
	}
	if target := f.Labels.Get("target"); target != "" {
		name += " of " + target
	}
	if lanes := f.Labels.Get("lanes"); lanes != "" && lanes != "1" {
		name += ", " + lanes + " at once"
	}
	change := page.Change(f)
	return strings.TrimSpace(page.Short(name, 2*page.LongestName) + " " + strings.TrimSpace(change.Head+" "+change.Tail))
}

// answer is the decision with the figures that made it, or why there is none.
func (g *Gate) answer() []string {
	text := string(g.Decision) + ": "
	if reasons := g.reasons(); g.Decision == stat.NotDecided && len(reasons) > 0 {
		text += page.Short(strings.TrimPrefix(reasons[0], noVerdict), page.LongestTitle)
		if n := len(reasons) - 1; n > 0 {
			text += fmt.Sprintf(", and %s", page.Amount(n, "other reason"))
		}
		return []string{text + "."}
	}
	var of []string
	for i := range g.Figures {
		if f := &g.Figures[i]; f.Verdict == string(g.Decision) && f.Versus != nil {
			of = append(of, named(f))
		}
	}
	if n := len(of) - mostNamed; n > 0 {
		of = append(of[:mostNamed], fmt.Sprintf("and %d more", n))
	}
	return []string{text + strings.Join(of, ", ") + " (margin " + page.Share(g.Margin) + ")."}
}

// reasons are those for which figures are not decided, each once.
func (g *Gate) reasons() (all []string) {
	for i := range g.Figures {
		if f := &g.Figures[i]; f.Verdict == string(stat.NotDecided) && len(f.Reasons) > 0 && !slices.Contains(all, f.Reasons[0]) {
			all = append(all, f.Reasons[0])
		}
	}
	return all
}
