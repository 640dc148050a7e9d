package stat

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// Gated is a comparison with a margin by which new may be worse than old.
type Gated struct {
	Comparison
	Worse    float64 // p-value for new being worse by at most the margin, adjusted for the table
	NotWorse float64 // p-value for new being worse by at least the margin
	Decision Decision
	Needs    int // number of rounds, or runs, needed to decide; 0: already decided, or no number is enough
}

// Decision is the result of a gate.
type Decision string

// Decisions.
const (
	Passed     Decision = "not worse"
	Regressed  Decision = "worse"
	NotDecided Decision = "not decided"
)

const mostRounds = 10000 // largest number of rounds to advise

// GateAll decides for each row whether new is worse than old by more than a margin. The margin
// is a positive share if more is worse, and a negative one if less is worse. The decision is
// Regressed if the whole interval is beyond the margin. Its level is adjusted for all rows,
// because a single row fails the gate. The decision is Passed if the whole interval is on the
// other side. This needs no adjustment, because all rows must pass (intersection–union; Berger,
// Technometrics 24 (1982) 295–300).
func GateAll(table []Sides, margins []float64, by Adjustment) []Gated {
	compared := CompareAll(table, 0, by)
	out := make([]Gated, len(table))
	for i, c := range compared {
		out[i] = Gated{Comparison: c, Worse: 1, NotWorse: 1, Decision: NotDecided}
		if g := &out[i]; c.seen != nil {
			less, greater := c.seen(math.Log1p(margins[i]))
			g.Worse, g.NotWorse = greater, less
			if margins[i] < 0 {
				g.Worse, g.NotWorse = less, greater
			}
		} else if allEqual(table[i]) {
			out[i].NotWorse = 0
		}
	}
	worse := adjusted(compared, by, func(c *Comparison) float64 { return out[c.at].Worse })
	for i := range out {
		g := &out[i]
		g.Worse = worse[i]
		beyond, within := g.Lo > margins[i], g.Hi < margins[i]
		if margins[i] < 0 {
			beyond, within = g.Hi < margins[i], g.Lo > margins[i]
		}
		switch { // with few rounds the interval is wider than the test requires
		case g.Worse < Alpha/2 && beyond:
			g.Decision = Regressed
		case g.NotWorse < Alpha/2 && (within || g.NotWorse == 0):
			g.Decision = Passed
		default:
			g.Needs = g.needs(math.Log1p(margins[i]), margins[i] > 0, len(table), by)
		}
		g.Why = g.why(margins[i])
	}
	return out
}

// allEqual reports whether all values of both sides are equal. For example, zero errors have
// no ratio.
func allEqual(s Sides) bool {
	values := slices.AppendSeq(slices.Collect(maps.Values(s.Old)), maps.Values(s.New))
	return len(s.Old) > 0 && len(s.New) > 0 && slices.Min(values) == slices.Max(values)
}

// needs returns the number of rounds at which the whole interval of the observed shift would be
// on one side of the margin. The interval narrows with the square root of this number.
func (g *Gated) needs(margin float64, moreIsWorse bool, among int, by Adjustment) int {
	have := min(g.N1, g.N2)
	fewest := RoundsFor(among, by)
	if g.Pairs > 0 {
		have = g.Pairs
	}
	if !Finite(g.Lo) || !Finite(g.Hi) || have == 0 {
		return max(fewest, have+1)
	}
	middle := math.Log1p(g.Shift)
	away := math.Abs(middle - margin)
	half := math.Log1p(g.Hi) - middle
	if middle > margin {
		half = middle - math.Log1p(g.Lo)
	}
	if (middle > margin) == moreIsWorse && by != Raw { // only Regressed is adjusted
		half *= stats.StdNormal.InvCDF(1-Alpha/2/float64(among)) / stats.StdNormal.InvCDF(1-Alpha/2)
	}
	rounds := float64(have) * half * half / (away * away)
	if !Finite(rounds) || rounds > mostRounds {
		return 0
	}
	if g.Runs {
		fewest = 2
	}
	return max(fewest, have+1, int(math.Ceil(rounds)))
}

// why returns the reason for the decision.
func (g *Gated) why(margin float64) string {
	seen := "it has no interval"
	if Finite(g.Lo) && Finite(g.Hi) {
		seen = fmt.Sprintf("%g %% interval %s to %s, margin %s", 100*(1-Alpha), percent(g.Lo), percent(g.Hi), percent(margin))
	}
	unit := "rounds"
	if g.Runs {
		unit = "runs"
	}
	switch {
	case g.N1 == 0 || g.N2 == 0:
		return "one side has no values"
	case g.Decision == Regressed:
		return fmt.Sprintf("%s (%s adjusted)", seen, P(g.Worse))
	case g.Decision == Passed:
		return fmt.Sprintf("%s (%s)", seen, P(g.NotWorse))
	case g.seen == nil:
		return "values that are not above 0 have no share of each other"
	case g.Needs == 0:
		return seen + "; the shift is too close to the margin for any number of " + unit + " to decide"
	}
	return fmt.Sprintf("%s; about %d %s of each would decide", seen, g.Needs, unit)
}
