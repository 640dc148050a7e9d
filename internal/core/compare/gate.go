package compare

import (
	"errors"
	"fmt"
	"math"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
)

// Headline selects the main figures of every experiment. Gated adds the time until the call
// returned, for latencies that end with the first instruction.
const (
	Headline = "quantity:(latency OR makespan OR wall-time OR memory OR cpu OR bandwidth OR requests) -quantile:/./ -role:/./"
	Gated    = "(" + Headline + ") OR (quantity:time-to stamp:returned op:(start OR run))"
)

// Gate decides whether the second column is worse than the first by more than a margin.
type Gate struct {
	*Comparison
	Margin   float64
	Decision stat.Decision
	Figures  []figure.Figure // the verdict of each figure is its decision
	Floor    float64         // for an A/A comparison: the smallest margin that all figures would pass
}

// Gate decides. A figure of only the first column is undecided. A figure without a direction
// cannot be worse. Differences between records prevent a decision as they prevent a verdict.
func (c *Comparison) Gate(margin float64) (*Gate, error) {
	g := &Gate{Comparison: c, Margin: margin, Decision: stat.Passed}
	c.how.Margin = margin
	var sides []stat.Sides
	var margins []float64
	var pairs []pair
	var bases []basis
	seen := map[string]bool{} // a time until a call returned may be in two tables, see alike
	for _, p := range c.pairs {
		b, key := c.basis(p), p.figure.Quantity+" "+p.figure.Labels.String()
		if p.figure.Better == "" || b.lacks == isControl || c.returned && seen[key] {
			continue
		}
		seen[key] = true
		m := margin
		if p.figure.Better == figure.More {
			m = -margin
		}
		pairs, sides, margins = append(pairs, p), append(sides, b.Sides), append(margins, m)
		bases = append(bases, b)
	}
	if len(pairs) == 0 {
		return nil, errors.New("no common figure has a direction (less or more is better), so none can regress: select others with --metric")
	}
	for i, one := range stat.GateAll(sides, margins, c.how.Adjust) {
		p := pairs[i]
		g.floor(p, &one)
		p.figure.Versus = p.both().Known(figure.Compared(c.Tables[0].Columns[0], &one.Comparison))
		bases[i].mark(p.figure.Versus)
		decision, why := one.Decision, one.Why
		if unproven := p.both().Unproven((decision == stat.Passed) == (p.figure.Better == figure.Less)); unproven != "" && (decision != stat.NotDecided || p.figure.Versus == nil) {
			decision, why = stat.NotDecided, unproven
		}
		if lacks := bases[i].lacks; lacks != "" && min(one.N1, one.N2) > 0 {
			decision, why = stat.NotDecided, lacks
		}
		if _, forbidden := c.about(p); forbidden != "" {
			decision, why = stat.NotDecided, forbidden
		}
		if p.cell.Failed*max(p.base.Total, 1) > p.base.Failed*max(p.cell.Total, 1) && decision == stat.Passed {
			decision, why = stat.NotDecided, fmt.Sprintf("more attempts failed: %d of %d, baseline %d of %d", p.cell.Failed, p.cell.Total, p.base.Failed, p.base.Total)
		}
		g.add(*p.figure, decision, why)
	}
	for _, one := range c.Only {
		if one.Base && one.Better != "" {
			g.add(one.Figure, stat.NotDecided, one.Reasons[0])
		}
	}
	return g, nil
}

// add records the decision for a figure. One regression fails the gate. The gate passes only if
// all figures pass.
func (g *Gate) add(f figure.Figure, d stat.Decision, why string) {
	f.Verdict, f.Reasons = string(d), []string{why}
	g.Figures = append(g.Figures, f)
	if d == stat.Regressed || d == stat.NotDecided && g.Decision == stat.Passed {
		g.Decision = d
	}
}

// floor raises g.Floor to the smallest margin at which this pair passes in both directions. An
// upper bound makes it infinite.
func (g *Gate) floor(p pair, one *stat.Gated) {
	end := max(one.Hi, 1/(1+one.Lo)-1)
	if !stat.Finite(end) || p.base.AtMost || p.cell.AtMost {
		end = math.Inf(1)
	}
	g.Floor = max(g.Floor, end)
}
