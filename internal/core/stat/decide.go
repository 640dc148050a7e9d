package stat

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Adjustment is the method that adjusts the p-values of a table for multiple comparisons.
type Adjustment string

// Adjustments.
const (
	// Holm keeps the probability of any false difference in a table below [Alpha] for any
	// dependence: Scandinavian Journal of Statistics 6 (1979) 65–70.
	Holm Adjustment = "holm"
	// BH keeps the expected share of false differences among all found differences below
	// Alpha: Benjamini and Hochberg, JRSS B 57 (1995) 289–300.
	BH Adjustment = "bh"
	// Raw does not adjust.
	Raw Adjustment = "none"
)

// decide sets the verdict of each comparison of a table. If both tests are significant, the
// verdict is Same.
func decide(table []Comparison, by Adjustment) {
	differ := adjusted(table, by, func(c *Comparison) float64 { return c.P })
	same := adjusted(table, by, func(c *Comparison) float64 { return c.PSame })
	for i := range table {
		c := &table[i]
		c.Adjusted, c.Verdict = differ[i], Undecided
		switch {
		case differ[i] < Alpha:
			c.Verdict = Different
		case same[i] < Alpha:
			c.Verdict = Same
		}
		c.Why = c.why(same[i], len(table), by)
	}
}

// adjusted returns the p-values of the table, adjusted for multiple comparisons.
func adjusted(table []Comparison, by Adjustment, p func(*Comparison) float64) []float64 {
	out, order := make([]float64, len(table)), make([]int, len(table))
	for i := range table {
		out[i], order[i] = p(&table[i]), i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(out[a], out[b]) })
	n := len(order)
	switch by {
	case Raw:
	case BH:
		least := 1.0
		for k := n - 1; k >= 0; k-- {
			least = min(least, out[order[k]]*float64(n)/float64(k+1))
			out[order[k]] = least
		}
	default:
		most := 0.0
		for k, i := range order {
			most = min(1, max(most, out[i]*float64(n-k)))
			out[i] = most
		}
	}
	return out
}

// RoundsFor returns the fewest rounds with which the exact test can be significant, whatever
// the values of the other comparisons: 6 for one comparison, 11 for thirty. Only [Holm] needs
// more rounds for more comparisons. With [BH] all comparisons can be significant together.
func RoundsFor(comparisons int, by Adjustment) int {
	if by == BH || by == Raw {
		comparisons = 1
	}
	n := 1
	for float64(max(comparisons, 1))*math.Exp2(1-float64(n)) >= Alpha {
		n++
	}
	return n
}

func (c *Comparison) why(same float64, among int, by Adjustment) string {
	of := fmt.Sprintf("of %d pairs", c.Pairs)
	switch {
	case c.Runs && c.Pairs > 0:
		of = fmt.Sprintf("of %d runs of both", c.Pairs)
	case c.Runs:
		of = fmt.Sprintf("of %d and %d runs", c.N1, c.N2)
	case c.Pairs == 0:
		of = fmt.Sprintf("of %d and %d rounds, none of them common", c.N1, c.N2)
	}
	p := P(c.P)
	if c.Adjusted != c.P {
		p += fmt.Sprintf(" (%s adjusted for %d comparisons)", P(c.Adjusted), among)
	}
	interval := ""
	if Finite(c.Lo) && Finite(c.Hi) {
		interval = fmt.Sprintf(", %g %% interval %s to %s", 100*(1-Alpha), percent(c.Lo), percent(c.Hi))
	}
	if c.Widened > 1 {
		interval += fmt.Sprintf(", %.1f times as wide as rounds that do not depend on each other would give", c.Widened)
	}
	need := RoundsFor(among, by)
	switch {
	case c.N1 == 0 || c.N2 == 0:
		return "one side has no values"
	case c.Verdict == Different:
		return fmt.Sprintf("%s %s%s", p, of, interval)
	case c.Verdict == Same:
		return fmt.Sprintf("less than %.3g %% apart: %s %s%s", 100*c.Margin, P(same), of, interval)
	case c.Pairs > 0 && c.Pairs < need && !c.Runs:
		return fmt.Sprintf("too few rounds: %d in both, of the %d that the table needs%s", c.Pairs, need, interval)
	}
	return fmt.Sprintf("neither a difference (%s) nor one of less than %.3g %% (%s) was shown %s%s", p, 100*c.Margin, P(same), of, interval)
}

// P formats a p-value. It never prints 0.
func P(p float64) string {
	if p < 0.001 {
		return "p<0.001"
	}
	return fmt.Sprintf("p=%.3f", p)
}

func percent(ratio float64) string {
	if !Finite(ratio) {
		return "?"
	}
	return fmt.Sprintf("%+.2f%%", 100*ratio)
}
