package compare

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// basis is what a verdict on a pair rests on: the values to compare, and the reason why
// there is no verdict, "" if there may be one. A verdict needs
//   - both sides in the rounds of one run, or
//   - at least [stat.FewestRuns] runs a side, or
//   - a control in the rounds of both sides: then its ratio to the control is compared, and
//     the spread from run to run enters the interval.
//
// Apart from the first, both sides also have to be undisturbed.
type basis struct {
	stat.Sides
	control string // by which both sides are divided, "" if they are not
	lacks   string
}

const (
	noVerdict = "no verdict: "
	isControl = noVerdict + "it is a control"

	wasDisturbed = " was disturbed: "
)

// mark sets what a comparison is of, and takes back a verdict that has no basis.
func (b *basis) mark(v *figure.Versus) {
	switch {
	case v == nil:
	case b.lacks != "":
		v.Verdict, v.Why = stat.Undecided, b.lacks
	case b.control != "":
		v.Of = figure.OfControl
	}
}

func (c *Comparison) basis(p pair) basis {
	b := basis{Sides: p.sides()}
	for _, run := range p.base.runs {
		if _, both := slices.BinarySearch(p.cell.runs, run); both {
			return b
		}
	}
	if b.lacks = c.disturbed(p.base.of[0], p.base.runs, p.cell.runs); b.lacks == "" && min(p.base.valued(), p.cell.valued()) < stat.FewestRuns {
		b = c.controlled(p)
	}
	return b
}

// valued returns the number of runs that have a value.
func (c *cell) valued() (n int) {
	for _, f := range c.of {
		if f.Known() || len(f.Rounds) > 0 {
			n++
		}
	}
	return n
}

// disturbed names a side of which more than half of the runs were disturbed in a figure.
func (c *Comparison) disturbed(f *figure.Figure, sides ...[]int) string {
	for _, runs := range sides {
		n, first := 0, ""
		for _, run := range runs {
			if why := c.runs[run].disturbance(f); why != "" {
				if n++; first == "" {
					first = noVerdict + page.Heading(c.runs[run].side) + wasDisturbed + why
				}
			}
		}
		if 2*n > len(runs) {
			return first
		}
	}
	return ""
}

// disturbance is what disturbed the figure in the run, "" if nothing beyond its bound.
func (r *Run) disturbance(f *figure.Figure) string {
	lanes := f.Labels.Get("lanes")
	for i := range r.Found {
		one := &r.Found[i]
		if slices.Contains(finding.Disturbing, one.Code) && (one.Target == "" || one.Target == f.Labels.Get("target")) &&
			(one.Op == "" || one.Op == f.Labels.Get("op")) && (one.Lanes == 0 || lanes == "" || lanes == fmt.Sprint(one.Lanes)) {
			return one.Message
		}
	}
	return ""
}

// controlled compares target ÷ control per round. The control may not have moved by more
// than the margin. How far runs of the same thing lie apart is taken from earlier runs of
// this machine, or else from how far the controls moved.
func (c *Comparison) controlled(p pair) basis {
	old, new := p.base.runs[len(p.base.runs)-1], p.cell.runs[len(p.cell.runs)-1]
	was, is := p.base.of[len(p.base.of)-1], p.cell.of[len(p.cell.of)-1]
	b := basis{Sides: p.sides(), lacks: noVerdict + "the sides are single runs at different times, without a control in both"}
	for _, d := range c.between(old, new) {
		if d.Kind == Kernel || d.Kind == System {
			return b // it moves the control, too
		}
	}
	controls := c.controls(old, new)
	if target := c.runs[old].target(was); target.Kind == "host" || target.Kind == "floor" || slices.Contains(controls, target.Name) {
		b.lacks = isControl
		return b
	}
	if why := c.disturbed(was, []int{old}, []int{new}); why != "" {
		b.lacks = why
		return b
	}
	moved, by := 0.0, "" // the control that moved the furthest
	for _, name := range controls {
		before, after := c.runs[old].sibling(was, name), c.runs[new].sibling(is, name)
		if before == nil || after == nil || !positive(before, after) {
			continue
		}
		if by == "" {
			b.control, b.Sides = name, stat.Sides{Old: ratio(was, before), New: ratio(is, after)}
		}
		if shift := math.Log(after.Value / before.Value); by == "" || math.Abs(shift) > math.Abs(moved) {
			moved, by = shift, name
		}
	}
	if by == "" {
		return b
	}
	b.lacks = ""
	if margin := c.how.Margin; math.Abs(moved) > math.Log1p(margin) {
		b.lacks = fmt.Sprintf("%sthe machine changed (%s %s)", noVerdict, page.Heading(by), page.Percent(100*math.Expm1(moved)))
	}
	if b.Between, b.Freedom = c.earlierSpread(old, was, controls); b.Freedom < 2 {
		b.Between, b.Freedom = c.controlSpread(old, new, was.Quantity, controls)
		if b.Freedom < 2 && b.lacks == "" { // it stays by chance too often
			b.lacks = noVerdict + "one figure of a control does not show how far runs lie apart (--earlier gives earlier records, --self makes some)"
		}
	}
	if (anyZero(was) || anyZero(is)) && b.lacks == "" {
		b.lacks = noVerdict + "rounds of 0 have no ratio to a control"
	}
	return b
}

// anyZero reports whether a round is not above 0, so that it has no logarithm.
func anyZero(f *figure.Figure) bool {
	return slices.ContainsFunc(f.Rounds, func(r figure.Round) bool { return !(r.Value > 0) })
}

// positive reports whether both figures have rounds and a value above 0.
func positive(a, b *figure.Figure) bool {
	return a.Value > 0 && b.Value > 0 && len(a.Rounds) > 0 && len(b.Rounds) > 0 && !a.AtMost && !b.AtMost
}

// controls are the names of targets that both runs have and that no change of a runtime
// can move: the named one, or else floor and host.
func (c *Comparison) controls(old, new int) (names []string) {
	for _, kind := range []string{"floor", "host"} {
		for _, t := range c.runs[old].Targets {
			if c.control == "" && t.Kind == kind {
				names = append(names, t.Name)
			}
		}
	}
	if c.control != "" {
		names = []string{c.control}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !slices.ContainsFunc(c.runs[new].Targets, func(t record.Target) bool { return t.Name == name })
	})
}

// sibling is the figure of another target of the same run, nil if there is none.
func (r *Run) sibling(f *figure.Figure, target string) *figure.Figure {
	return r.find(f.Quantity, f, "target", target)
}

// find is the figure of a quantity with another figure's labels but for one, nil if there is
// none.
func (r *Run) find(quantity string, like *figure.Figure, key, value string) *figure.Figure {
	want := like.Labels.With(key, value).String()
	for i := range r.Figures {
		if g := &r.Figures[i]; g.Quantity == quantity && g.Experiment == like.Experiment && g.Labels.String() == want {
			return g
		}
	}
	return nil
}

// ratio is a figure ÷ a control by round.
func ratio(f, control *figure.Figure) stat.Rounds {
	out, by := stat.Rounds{}, control.Values()
	for _, r := range f.Rounds {
		if v, both := by[r.Round]; both && v > 0 {
			out[r.Round] = r.Value / v
		}
	}
	return out
}

// earlierSpread is twice the variance of target ÷ control among earlier runs under the
// same circumstances, beyond what their rounds explain, and its degrees of freedom.
func (c *Comparison) earlierSpread(like int, f *figure.Figure, controls []string) (variance, freedom float64) {
	var levels, own []float64
	for i := range c.earlier {
		e := &c.earlier[i]
		unlike := slices.ContainsFunc(differences(&c.runs[like], e), func(d Difference) bool {
			return d.Kind != Version && (d.Target == "" || d.Target == f.Labels.Get("target"))
		})
		for _, name := range controls {
			of, by := e.sibling(f, f.Labels.Get("target")), e.sibling(f, name)
			if !unlike && of != nil && by != nil && positive(of, by) {
				level := figure.Median(ratio(of, by))
				levels, own = append(levels, math.Log(level.Value)), append(own, sampling(level))
				break
			}
		}
	}
	if len(levels) < stat.FewestRuns {
		return 0, 0
	}
	return 2 * stat.BetweenRuns(levels, own, false), float64(len(levels) - 1)
}

// controlSpread is the variance by which the controls' own figures of a quantity moved,
// beyond what their rounds explain, and its degrees of freedom.
func (c *Comparison) controlSpread(old, new int, quantity string, controls []string) (variance, freedom float64) {
	var shifts, own []float64
	for i := range c.runs[old].Figures {
		before := &c.runs[old].Figures[i]
		if before.Quantity != quantity || !slices.Contains(controls, before.Labels.Get("target")) {
			continue
		}
		if after := c.runs[new].sibling(before, before.Labels.Get("target")); after != nil && positive(before, after) {
			shift := math.Log(after.Value / before.Value)
			shifts, own = append(shifts, shift), append(own, sampling(before.Estimate)+sampling(after.Estimate))
		}
	}
	return stat.BetweenRuns(shifts, own, true), float64(len(shifts))
}

// sampling is the variance of the logarithm of a median by its interval, 0 if unknown.
func sampling(e figure.Estimate) float64 {
	if !e.Bounded || !(e.Lo > 0) {
		return 0
	}
	half := math.Log(e.Hi/e.Lo) / 2 / 1.96
	return half * half
}

// plain is a word that a shell takes as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_][A-Za-z0-9@%+=:,./_-]*$`)

// advice is a command that gives a verdict where one lacks a basis, "" if none does.
func (c *Comparison) advice() string {
	for _, p := range c.pairs {
		lacks := c.basis(p).lacks
		if lacks == "" || lacks == isControl {
			continue
		}
		old, new := c.runs[p.base.runs[0]].target(p.base.of[0]), c.runs[p.cell.runs[0]].target(p.cell.of[0])
		if old.Path != new.Path && plain.MatchString(old.Path) && plain.MatchString(new.Path) {
			return fmt.Sprintf("to decide, measure both in the same rounds: tare gate --interleave old=%s new=%s --worse %s", old.Path, new.Path, strings.ReplaceAll(page.Share(c.how.Margin), " ", ""))
		}
		run := &c.runs[p.cell.runs[0]]
		var names []string
		for _, t := range run.Targets {
			switch {
			case t.Kind == "host" || t.Kind == "floor":
			case t.Path != "":
				names = append(names, t.Name+"="+t.Path)
			default:
				names = append(names, t.Name)
			}
		}
		words := append([]string{run.Header.Experiment, "host", "floor"}, names...)
		if run.Header.Environment.Kernel == "" { // nothing can be measured again
			return fmt.Sprintf("to decide, give at least %d records a side", stat.FewestRuns)
		}
		if run.Header.Experiment == "" || slices.ContainsFunc(words, func(w string) bool { return !plain.MatchString(w) }) {
			return "to decide, give at least 3 records a side, or measure both sides in the same rounds (tare gate --interleave)"
		}
		how := fmt.Sprintf("give at least %d records a side; another one", stat.FewestRuns)
		if strings.Contains(lacks, wasDisturbed) {
			how = "measure both again on a quiet machine"
		}
		return "to decide, " + how + ": tare " + strings.Join(words, " ") + " -o more.jsonl"
	}
	return ""
}

// target is that of a figure.
func (r *Run) target(f *figure.Figure) record.Target {
	for _, t := range r.Targets {
		if t.Name == f.Labels.Get("target") {
			return t
		}
	}
	return record.Target{}
}

// recorded lists the findings of the records by side, or of all together.
func (c *Comparison) recorded(together bool) *page.Section {
	type key struct{ side, code string }
	n, first, runs := map[key]int{}, map[key]string{}, map[string]int{}
	var order []key
	for i := range c.runs {
		r, side := &c.runs[i], "all"
		if !together {
			side = page.Heading(r.side)
		}
		runs[side]++
		seen := map[string]bool{}
		for _, f := range r.Found {
			k := key{side, f.Code}
			if seen[f.Code] {
				continue
			}
			if seen[f.Code] = true; n[k] == 0 {
				order, first[k] = append(order, k), strings.TrimSpace(page.Heading(f.Target)+" "+f.Op)
				if first[k] != "" {
					first[k] += ": "
				}
				first[k] += page.Short(f.Message, page.LongestMessage)
			}
			n[k]++
		}
	}
	if len(order) == 0 {
		return nil
	}
	slices.SortStableFunc(order, func(a, b key) int { return n[b] - n[a] })
	table := page.Names("records of", "finding", "runs", "the first")
	for _, k := range order {
		table.Row(page.Texts(k.side, k.code, fmt.Sprintf("%d of %d", n[k], runs[k.side]), first[k])...)
	}
	return &page.Section{Title: "findings of the records", Table: table}
}
