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

// basis is the basis of a verdict on a pair: the values to compare, and the reason why a
// verdict is impossible. A verdict needs one of:
//   - both sides in the rounds of one run
//   - at least [stat.FewestRuns] runs per side
//   - a control target measured in the same rounds as each side; the ratio to the control is
//     compared, and the interval includes the spread between runs
//
// Except in the first case, both sides must also be undisturbed.
type basis struct {
	stat.Sides
	control string // target that both sides are divided by; "" for none
	lacks   string
}

const (
	noVerdict = "no verdict: "
	isControl = noVerdict + "it is a control"

	wasDisturbed = " was disturbed: "
)

// mark sets the kind of a comparison. It withdraws a verdict without a basis.
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
	if slices.ContainsFunc(p.base.runs, func(run int) bool { _, both := slices.BinarySearch(p.cell.runs, run); return both }) {
		return b
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

// disturbed returns the reason why there is no verdict on a figure: findings say that more than
// half of a side's runs were disturbed. It returns "" if this is true of neither side.
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

// disturbance returns the message of a finding that disturbs the figure in this run, or "".
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

// controlled compares target ÷ control per round. It gives no verdict if a control itself
// changed by more than the margin. The variance between runs is estimated from earlier runs on
// this machine, or else from the changes of the controls.
func (c *Comparison) controlled(p pair) basis {
	old, new := p.base.runs[len(p.base.runs)-1], p.cell.runs[len(p.cell.runs)-1]
	was, is := p.base.of[len(p.base.of)-1], p.cell.of[len(p.cell.of)-1]
	b := basis{Sides: p.sides(), lacks: noVerdict + "the sides are single runs at different times, without a control in both"}
	if slices.ContainsFunc(c.between(old, new), func(d Difference) bool { return d.Kind == Kernel || d.Kind == System }) {
		return b // the control changes too
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
	by, moved := "", 0.0 // the largest change of a control
	for _, name := range controls {
		before, after := c.runs[old].sibling(was, name), c.runs[new].sibling(is, name)
		if !positive(before, after) {
			continue
		}
		if by == "" {
			b.control, b.Sides = name, stat.Sides{Old: ratio(was, before), New: ratio(is, after)}
		}
		if shift := math.Log(after.Value / before.Value); by == "" || math.Abs(shift) > math.Abs(moved) {
			by, moved = name, shift
		}
	}
	if by == "" {
		return b
	}
	if b.lacks = ""; math.Abs(moved) > math.Log1p(c.how.Margin) {
		b.lacks = fmt.Sprintf("%sthe machine changed (%s %s)", noVerdict, page.Heading(by), page.Percent(100*math.Expm1(moved)))
	}
	if b.Between, b.Freedom = c.earlierSpread(old, was, controls); b.Freedom < 2 {
		b.Between, b.Freedom = c.controlSpread(old, new, was.Quantity, controls)
		if b.Freedom < 2 && b.lacks == "" { // with one figure, a small change is often chance
			b.lacks = noVerdict + "a single control figure does not show the spread between runs (add earlier records with --earlier, or measure it with --self)"
		}
	}
	if (anyZero(was) || anyZero(is)) && b.lacks == "" {
		b.lacks = noVerdict + "rounds of 0 have no ratio to a control"
	}
	return b
}

// anyZero reports whether a round is not above 0 and so has no logarithm.
func anyZero(f *figure.Figure) bool {
	return slices.ContainsFunc(f.Rounds, func(r figure.Round) bool { return !(r.Value > 0) })
}

// positive reports whether both figures exist and have rounds and a value above 0.
func positive(a, b *figure.Figure) bool {
	return a != nil && b != nil && a.Value > 0 && b.Value > 0 && len(a.Rounds) > 0 && len(b.Rounds) > 0 && !a.AtMost && !b.AtMost
}

// controls returns the controls that both runs have: the target named by --control, or else
// floor and host. A runtime change does not affect them.
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

// sibling returns the same figure of another target in the same run, or nil.
func (r *Run) sibling(f *figure.Figure, target string) *figure.Figure {
	return r.find(f.Quantity, f, "target", target)
}

// find returns the figure of a quantity with the labels of like, except that the label key has
// the given value. It returns nil if there is none.
func (r *Run) find(quantity string, like *figure.Figure, key, value string) *figure.Figure {
	want := like.Labels.With(key, value).String()
	for i := range r.Figures {
		if g := &r.Figures[i]; g.Quantity == quantity && g.Experiment == like.Experiment && g.Labels.String() == want {
			return g
		}
	}
	return nil
}

// ratio returns figure ÷ control per round.
func ratio(f, control *figure.Figure) stat.Rounds {
	out, by := stat.Rounds{}, control.Values()
	for _, r := range f.Rounds {
		if v, both := by[r.Round]; both && v > 0 {
			out[r.Round] = r.Value / v
		}
	}
	return out
}

// earlierSpread returns twice the variance of target ÷ control between earlier runs in the same
// circumstances, without the variance within runs. It also returns the degrees of freedom.
func (c *Comparison) earlierSpread(like int, f *figure.Figure, controls []string) (variance, freedom float64) {
	var levels, own []float64
	for i := range c.earlier {
		e := &c.earlier[i]
		unlike := slices.ContainsFunc(differences(&c.runs[like], e), func(d Difference) bool {
			return d.Kind != Version && (d.Target == "" || d.Target == f.Labels.Get("target"))
		})
		for _, name := range controls {
			of, by := e.sibling(f, f.Labels.Get("target")), e.sibling(f, name)
			if !unlike && positive(of, by) {
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

// controlSpread returns the variance of the controls' changes in a quantity, without the
// variance within runs. It also returns the degrees of freedom.
func (c *Comparison) controlSpread(old, new int, quantity string, controls []string) (variance, freedom float64) {
	var shifts, own []float64
	for i := range c.runs[old].Figures {
		before := &c.runs[old].Figures[i]
		if before.Quantity != quantity || !slices.Contains(controls, before.Labels.Get("target")) {
			continue
		}
		if after := c.runs[new].sibling(before, before.Labels.Get("target")); positive(before, after) {
			shift := math.Log(after.Value / before.Value)
			shifts, own = append(shifts, shift), append(own, sampling(before.Estimate)+sampling(after.Estimate))
		}
	}
	return stat.BetweenRuns(shifts, own, true), float64(len(shifts))
}

// sampling returns the variance of the logarithm of a median from its interval, or 0 if unknown.
func sampling(e figure.Estimate) float64 {
	if !e.Bounded || !(e.Lo > 0) {
		return 0
	}
	half := math.Log(e.Hi/e.Lo) / 2 / 1.96
	return half * half
}

// plain matches a word that needs no quoting in a shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_][A-Za-z0-9@%+=:,./_-]*$`)

// advice returns a command whose result would allow a verdict, or "" if none is needed.
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
		if run.Header.Environment.Kernel == "" { // the host is unknown, so the run cannot be repeated
			return fmt.Sprintf("to decide, give at least %d records per side", stat.FewestRuns)
		}
		if run.Header.Experiment == "" || slices.ContainsFunc(words, func(w string) bool { return !plain.MatchString(w) }) {
			return "to decide, give at least 3 records per side, or measure both sides in the same rounds (tare gate --interleave)"
		}
		how := fmt.Sprintf("give at least %d records per side; measure another one", stat.FewestRuns)
		if strings.Contains(lacks, wasDisturbed) {
			how = "measure both again on a quiet machine"
		}
		return "to decide, " + how + ": tare " + strings.Join(words, " ") + " -o more.jsonl"
	}
	return ""
}

// target returns the target of a figure.
func (r *Run) target(f *figure.Figure) record.Target {
	if i := slices.IndexFunc(r.Targets, func(t record.Target) bool { return t.Name == f.Labels.Get("target") }); i >= 0 {
		return r.Targets[i]
	}
	return record.Target{}
}

// recorded lists the findings of the records, per side or for all sides together.
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
	table := page.Names("records", "finding", "runs", "first message")
	for _, k := range order {
		table.Row(page.Texts(k.side, k.code, fmt.Sprintf("%d of %d", n[k], runs[k.side]), first[k])...)
	}
	return &page.Section{Title: "findings of the records", Table: table}
}
