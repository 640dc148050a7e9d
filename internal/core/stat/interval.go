package stat

import "math"

// MinRounds returns the fewest values for a two-sided interval of the median at a confidence
// (0 to 1): 6 for 0.95, 8 for 0.99. The widest interval, from the smallest to the largest of n
// values, misses the median with probability 2·2⁻ⁿ. It returns math.MaxInt for a confidence
// of at least 1 and for NaN.
func MinRounds(confidence float64) int {
	// From n = 55 on, 1 − 2·2⁻ⁿ rounds to 1 in a float64, above any confidence below 1.
	for n := 2; n <= 55; n++ {
		if 1-math.Exp2(1-float64(n)) >= confidence && confidence < 1 {
			return n
		}
	}
	return math.MaxInt
}
