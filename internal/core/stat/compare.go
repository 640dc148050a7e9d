package stat

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Rounds holds one value for each round by the round's number. A round that
// failed is absent: a failure is not a time.
type Rounds map[int]float64

// Comparison says whether two targets differ, and by how much.
type Comparison struct {
	N1, N2 int // rounds of old and of new
	Pairs  int // rounds that both have

	// Delta is the ratio of the medians of all rounds, new / old − 1. NaN when
	// there are none or old's median is not positive.
	Delta float64

	// P is of the two-sided Mann–Whitney U test; 1 where it cannot be made.
	P float64

	// PairedDelta is the median over the pairs of new / old − 1, and PairedLo
	// and PairedHi its interval at confidence 1 − [Alpha]. NaN when there are
	// no pairs or a value of old among them is not positive; the interval also
	// when there are too few pairs for one.
	PairedDelta, PairedLo, PairedHi float64

	// Different is the verdict, and Why its reason in words.
	Different bool
	Why       string

	Warnings []string
}

// Compare tells whether new differs from old. It says so only if
//
//   - the Mann–Whitney U test over all rounds gives p below [Alpha], and
//   - the sign test over the rounds both have does too, that is, the interval
//     of the median difference within a round excludes 0,
//
// and both point the same way.
//
// Both, because each is weak where the other is strong. The U test does not
// know that rounds are paired: a machine that drifts or is disturbed for a few
// rounds widens both samples alike, and the test misses a difference that
// every round shows. The sign test knows nothing but the pairs: it believes a
// shift that is tiny against the scatter if it is only steady enough, such as
// the cost of always going second. Demanding both also keeps the false-positive
// rate below Alpha, as two equal targets must fool two tests at once: in
// simulation it was 2 % at most on a steady machine, 1 % on a drifting one.
//
// The price is power under drift: a shift is found only where it stands out from
// the scatter between rounds. Under a noise of 2 %, 20 rounds find a shift of 5 %
// nearly always on a steady machine, but in one run of eight on one that slows by
// 30 % meanwhile (there PairedLo and PairedHi show it, and Why says what was
// missing). An undecided comparison is "not shown to differ", never "shown to be
// equal".
//
// The paired test uses the differences and not the ratios, so that it also
// holds for values that may be zero or negative, such as a change of memory;
// for positive values both give the same verdict.
//
// References: Mann and Whitney, Annals of Mathematical Statistics 18 (1947)
// 50–60; Conover, Practical Nonparametric Statistics, 3rd ed. 1999, sections
// 3.4 (sign test) and 5.1 (U test).
func Compare(old, new Rounds) Comparison {
	c := Comparison{}
	before := c.take(old, "old")
	after := c.take(new, "new")
	c.N1, c.N2 = len(before), len(after)
	was, is := median(before), median(after)
	c.Delta = math.NaN()
	if was > 0 {
		c.Delta = is/was - 1
	}
	var warnings []string
	c.P, warnings = mannWhitney(before, after)
	c.Warnings = append(c.Warnings, warnings...)

	differences, ratios := pairs(old, new)
	c.Pairs = len(differences)
	c.PairedDelta = median(ratios)
	c.PairedLo, c.PairedHi = math.NaN(), math.NaN()
	k, ok := signRank(c.Pairs, 1-Alpha)
	if !ok {
		c.Why = fmt.Sprintf("too few rounds: %d in both, need %d", c.Pairs, MinRounds(1-Alpha))
		return c
	}
	if ratios != nil {
		c.PairedLo, c.PairedHi = ratios[k-1], ratios[c.Pairs-k]
	}
	c.decide(differences[k-1], differences[c.Pairs-k], is-was)
	return c
}

// decide weighs p, the interval of the difference within a round, and the
// difference of the medians.
func (c *Comparison) decide(lo, hi, shift float64) {
	switch {
	case lo <= 0 && hi >= 0:
		c.Why = fmt.Sprintf("the difference within a round may be none: median %s, %s", percent(c.PairedDelta), c.interval())
	case c.P >= Alpha:
		c.Why = fmt.Sprintf("p=%.3f is not below %v: the scatter between rounds is as large as the difference", c.P, Alpha)
	case lo > 0 != (shift > 0) || shift == 0:
		c.Why = fmt.Sprintf("the medians (%s) and the rounds (%s) point different ways", percent(c.Delta), c.interval())
	default:
		c.Different = true
		c.Why = fmt.Sprintf("p=%.3f, and within a round %s", c.P, c.interval())
	}
}

func (c *Comparison) interval() string {
	return fmt.Sprintf("%g%% interval %s to %s of %d pairs", 100*(1-Alpha), percent(c.PairedLo), percent(c.PairedHi), c.Pairs)
}

func percent(ratio float64) string {
	if !Finite(ratio) {
		return "?"
	}
	return fmt.Sprintf("%+.2f%%", 100*ratio)
}

// take returns the finite values of one side, sorted.
func (c *Comparison) take(r Rounds, side string) []float64 {
	kept := make([]float64, 0, len(r))
	for _, v := range r {
		if Finite(v) {
			kept = append(kept, v)
		}
	}
	if left := len(r) - len(kept); left > 0 {
		c.Warnings = append(c.Warnings, side+": "+leftOut(left, len(r)))
	}
	slices.Sort(kept)
	return kept
}

// pairs returns, each sorted, new − old and new / old − 1 of the rounds in
// which both are finite. There are no ratios if an old value is not positive:
// those of the other rounds alone would be a selection.
func pairs(old, new Rounds) (differences, ratios []float64) {
	whole := true
	for round, was := range old {
		is, both := new[round]
		if !both || !Finite(was) || !Finite(is) {
			continue
		}
		differences = append(differences, is-was)
		if was > 0 {
			ratios = append(ratios, is/was-1)
		} else {
			whole = false
		}
	}
	if !whole {
		ratios = nil
	}
	slices.Sort(differences)
	slices.Sort(ratios)
	return differences, ratios
}

// mannWhitney is the two-sided p-value; 1, with the reason, where no test is
// possible. It is capped because benchmath doubles the smaller tail, and with
// ties that tail can hold more than half.
func mannWhitney(a, b []float64) (p float64, warnings []string) {
	thresholds := benchmath.DefaultThresholds
	thresholds.CompareAlpha = Alpha
	u := benchmath.AssumeNothing.Compare(
		benchmath.NewSample(slices.Clone(a), &thresholds),
		benchmath.NewSample(slices.Clone(b), &thresholds))
	for _, w := range u.Warnings {
		warnings = append(warnings, w.Error())
	}
	return min(u.P, 1), warnings
}
