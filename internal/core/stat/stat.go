// Package stat turns measured values into figures that can be trusted, and
// says when they cannot be.
//
// Start times of containers are skewed, drift with the machine, and come ten
// at a time. So nothing here assumes a normal distribution: the centre is the
// median, its interval is made of order statistics, and a difference is told by
// ranks of what differs within a round (see [CompareAll]).
// The form the field's reports print (mean without the largest and the
// smallest, difference in percent) is here too, as [Trimmed] and [Versus], to
// stand beside published tables and not to decide anything.
//
// All functions are pure: they keep no state, change no argument and return
// the same answer for the same values. They know no unit; a result has the
// unit of what went in, unless it is a ratio or a percentage and says so.
//
// A NaN or an infinity is not a measurement. A function whose result has an N leaves
// such values out and shows in N what remained; every other function refuses the whole
// input, answering NaN or false.
package stat

import (
	"math"
	"slices"
)

// Alpha is how often a table of comparisons may show any difference where both sides
// are the same thing. Intervals have confidence 1 − Alpha.
const Alpha = 0.05

// StopConfidence is that of the interval on which a run stops that adds rounds until
// it is precise enough. Chance makes an interval narrow now and then, and such a run
// stops just there: the interval that it reports, at 1 − [Alpha], held in 91 to 93 %
// of simulated runs that stopped on itself.
const StopConfidence = 0.99

// worthSaying is the smallest relative shift that [SteadinessOf] and [Bimodal] report.
// With enough rounds any machine shows a significant shift of a thousandth;
// 5 % is what a reader would act on.
const worthSaying = 0.05

// findingAlpha is the level of [SteadinessOf] and [Bimodal] for all rows that are read
// together. docs/statistics.md has how often each of their three findings is false.
const findingAlpha = 0.01

// Finite tells numbers from what is none.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func allFinite(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !Finite(v) })
}

// measured returns a copy of the finite values in their order. It is always a copy:
// benchmath sorts what it is given, and its U test fills all memory when it meets a NaN.
func measured(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !Finite(v) })
}

// median of sorted values; NaN of none. Halves are added, not sums halved, so
// that it cannot overflow.
func median(sorted []float64) float64 {
	n := len(sorted)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return sorted[n/2]
	}
	return sorted[n/2-1]/2 + sorted[n/2]/2
}

func middleOf(values []float64) float64 { return median(slices.Sorted(slices.Values(values))) }

// deviations are how far values lie from their median.
func deviations(values []float64) (middle float64, off []float64) {
	middle, off = middleOf(values), make([]float64, len(values))
	for i, v := range values {
		off[i] = math.Abs(v - middle)
	}
	return middle, off
}
