package stat

import (
	"fmt"
	"math"
	"slices"
)

// Trimmed is the mean after dropping exactly one largest and one smallest
// value, in the unit of the values. ok is false for fewer than three values,
// or if any is not finite.
//
// It is the form of the iSulad performance report, 2020: ten rounds, drop the
// largest and the smallest, mean of the remaining eight.
func Trimmed(values []float64) (mean float64, ok bool) {
	if len(values) < 3 || !allFinite(values) {
		return math.NaN(), false
	}
	sorted := slices.Sorted(slices.Values(values))
	kept := sorted[1 : len(sorted)-1]
	sum := 0.0
	for _, v := range kept {
		sum += v
	}
	return sum / float64(len(kept)), true
}

// Versus is the percentage by which new exceeds old, the "VS" column of the
// iSulad performance report, 2020: (new − old) / old × 100. It is NaN where no
// percentage exists: old is 0, or one of them is not finite.
func Versus(old, new float64) float64 {
	if old == 0 || !Finite(old) || !Finite(new) {
		return math.NaN()
	}
	return (new - old) / old * 100
}

// FormatVersus prints [Versus] as the report does: "-54.36%", "+1.81%". What
// rounds to nothing has no sign, "0.00%"; what does not exist is "?".
func FormatVersus(old, new float64) string {
	percent := Versus(old, new)
	if !Finite(percent) {
		return "?"
	}
	if math.Abs(percent) < 0.005 {
		return "0.00%"
	}
	return fmt.Sprintf("%+.2f%%", percent)
}
