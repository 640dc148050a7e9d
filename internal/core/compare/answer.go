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

// mostNamed is the maximum number of figures that an answer names.
const mostNamed = 3

// answer summarizes the comparison of each column with the first. It names the largest
// differences and counts the verdicts.
func (c *Comparison) answer() (out []string) {
	if len(c.Tables) == 0 {
		return []string{"These records have nothing to compare."}
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
				case string(stat.Different): // neither direction is better
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
			text += fmt.Sprintf(", %d different but neither better nor worse", n)
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

// largest names the figures with the largest differences.
func largest(all []*figure.Figure) string {
	var parts []string
	for _, f := range sorted(all)[:min(len(all), mostNamed)] {
		parts = append(parts, named(f))
	}
	return strings.Join(parts, ", ")
}

// sorted sorts figures by the size of their shift, largest first.
func sorted(all []*figure.Figure) []*figure.Figure {
	size := func(f *figure.Figure) float64 {
		if f.Versus == nil {
			return 0
		}
		return math.Abs(math.Log1p(max(f.Versus.Shift.Value, -0.999)))
	}
	slices.SortStableFunc(all, func(a, b *figure.Figure) int { return cmp.Compare(size(b), size(a)) })
	return all
}

// headline names the most important figures of a column.
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

// named returns a figure's name and shift: "run of crun +69 % [+29, +126]".
func named(f *figure.Figure) string {
	change := page.Change(f)
	return strings.TrimSpace(called(f) + " " + strings.TrimSpace(change.Head+" "+change.Tail))
}

// called returns a figure's name: "run of crun".
func called(f *figure.Figure) string {
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
	return page.Short(name, 2*page.LongestName)
}

// answer lists the points at which figures became worse or better, largest changes first.
// Without changes, it returns the smallest change that was detectable.
func (h *History) answer() (out []string) {
	var changed []*figure.Figure
	between, from := map[*figure.Figure]string{}, map[*figure.Figure]string{}
	finds := math.Inf(1)
	for _, s := range h.Series {
		if s.Finds > 0 {
			finds = min(finds, s.Finds)
		}
		levels := h.levels(s)
		for k, c := range s.Changes {
			f := &levels[k+1]
			changed, from[f] = append(changed, f), page.Median(&levels[k]).Head
			between[f] = page.Heading(h.Points[s.At[c.At-1]]) + " and " + page.Heading(h.Points[s.At[c.At]])
		}
	}
	for _, verdict := range []string{string(stat.Regressed), "better", ""} {
		var of []*figure.Figure
		for _, f := range changed {
			if f.Verdict == verdict || verdict == "" && f.Verdict != string(stat.Regressed) && f.Verdict != "better" {
				of = append(of, f)
			}
		}
		for i, f := range sorted(of) {
			if i == mostNamed {
				out = append(out, fmt.Sprintf("%s became %s.", page.Amount(len(of)-i, "more figure"), cmp.Or(verdict, "different")))
				break
			}
			change := page.Change(f)
			out = append(out, fmt.Sprintf("%s became %s between %s: %s to %s (%s).", called(f), cmp.Or(verdict, "different"), between[f], from[f], page.Median(f).Head, strings.TrimSpace(change.Head+" "+change.Tail)))
		}
	}
	switch {
	case out != nil:
		return out
	case math.IsInf(finds, 1):
		return []string{fmt.Sprintf("No change is detectable in %s of %s: %s.", page.Amount(h.runs, "run"), page.Amount(len(h.Points), "point"), h.needed())}
	}
	return []string{fmt.Sprintf("No change was detected in %d series over %s; the most stable series would have shown a change of %s.", len(h.Series), page.Amount(len(h.Points), "point"), page.Share(finds))}
}

// answer describes the distribution of the main figure over the nodes, the outliers and the
// failures.
func (m *measured) answer(shown []*overNodes, apart []apartNode, parted []*circumstance) (out []string) {
	i := slices.IndexFunc(shown, func(o *overNodes) bool { return o.Labels.Get("op") == "run" && o.Labels.Get("target") != "host" })
	if len(shown) > 0 {
		o := shown[max(i, 0)]
		levels := o.levels(m)
		text := func(at int) string { return page.Text(levels[at].Value, o.Unit) }
		out = append(out, fmt.Sprintf("%s on %s: median %s, 8 of 10 from %s to %s.", called(&o.Figure), m.amount(len(o.values)), text(middle), text(tenth), text(ninetieth)))
	}
	switch n := len(apart); {
	case len(m.names) < stat.FewestForOutliers:
		out = append(out, fmt.Sprintf("%s are too few to detect outliers.", m.amount(len(m.names))))
	case n == 0:
		out = append(out, "No "+m.noun()+" is an outlier.")
	default:
		var names []string
		alike := m.unlike(apart[0].node, parted)
		for i := range apart {
			a := &apart[i]
			names = append(names, fmt.Sprintf("%s (%s %s)", page.Heading(m.names[a.node]), called(&a.figures[0].of.Figure), page.Text(a.figures[0].value, a.figures[0].of.Unit)))
			own := m.unlike(a.node, parted)
			alike = slices.DeleteFunc(alike, func(fact string) bool { return !slices.Contains(own, fact) })
		}
		text := fmt.Sprintf("%d of %s are outliers: %s", n, m.amount(len(m.names)), page.Listed(names))
		if alike != nil {
			text += "; they have in common: " + page.Short(strings.Join(alike, "; "), page.LongestMessage)
		}
		out = append(out, text+".")
	}
	if failed, total, failing := m.failures(); failed > 0 {
		out = append(out, fmt.Sprintf("%d of %d operations failed, on %s.", failed, total, page.Listed(failing)))
	}
	return out
}

// answer returns the decision with the figures behind it, or the reason why there is none.
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

// reasons returns the distinct reasons of all undecided figures.
func (g *Gate) reasons() (all []string) {
	for i := range g.Figures {
		if f := &g.Figures[i]; f.Verdict == string(stat.NotDecided) {
			all = page.Union(all, f.Reasons[:min(len(f.Reasons), 1)]...)
		}
	}
	return all
}
