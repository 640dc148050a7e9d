package stat

import (
	"fmt"
	"math"
	"slices"
)

// Trimmed returns the mean without the largest and the smallest value. ok is false for fewer
// than three values, or if a value is not finite.
//
// The iSulad performance report, 2020, uses it: the mean of eight of ten rounds.
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

// Versus returns the percentage by which new exceeds old: (new − old) / old × 100. This is the
// "VS" column of the iSulad performance report, 2020. It is NaN if old is 0 or a value is not
// finite.
func Versus(old, new float64) float64 {
	if old == 0 || !Finite(old) || !Finite(new) {
		return math.NaN()
	}
	return (new - old) / old * 100
}

// FormatVersus formats [Versus] as the report does: "-54.36%", "+1.81%", or "0.00%" without a
// sign. It returns "?" for NaN.
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
