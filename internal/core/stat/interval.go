package stat

import "math"

// MinRounds is the fewest values for which a two-sided interval of the median
// exists at the given confidence (0 to 1): 6 for 0.95, 8 for 0.99. The widest
// interval, from the smallest to the largest of n values, misses the median
// with probability 2·2⁻ⁿ. No number suffices for a confidence of 1 or more, or
// NaN; the answer is then math.MaxInt, so that "n < MinRounds" stays true.
func MinRounds(confidence float64) int {
	// From n = 55 on, 1 − 2·2⁻ⁿ is 1 in a float64, and so is no confidence below 1.
	for n := 2; n <= 55; n++ {
		if 1-math.Exp2(1-float64(n)) >= confidence && confidence < 1 {
			return n
		}
	}
	return math.MaxInt
}

// signRank returns the rank k for which the k-th smallest and the k-th largest
// of n values enclose the median with at least the given confidence, taking
// the narrowest such interval. ok is false when n is too small.
//
// This is the interval that inverts the sign test (David and Nagaraja, Order
// Statistics, 3rd ed. 2003, section 7.1). Both tails are equal, which
// benchmath's are not: exchanging the two sides of a comparison must not change
// the verdict.
func signRank(n int, confidence float64) (k int, ok bool) {
	const rounding = 1e-12 // of Lgamma; far below any tail that decides
	tail := 0.0
	for ; k < (n+1)/2; k++ {
		tail += binomialHalf(n, k)
		if 2*tail > (1-confidence)+rounding {
			break
		}
	}
	return k, k > 0
}

// binomialHalf is the probability of k heads in n fair tosses. By logarithms,
// because 2⁻ⁿ underflows where n does not.
func binomialHalf(n, k int) float64 {
	all, _ := math.Lgamma(float64(n + 1))
	heads, _ := math.Lgamma(float64(k + 1))
	tails, _ := math.Lgamma(float64(n - k + 1))
	return math.Exp(all - heads - tails - float64(n)*math.Ln2)
}
