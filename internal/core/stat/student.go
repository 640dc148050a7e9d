package stat

import "math"

// studentWithin is the probability that Student's t with so many degrees of
// freedom, a whole number above 0, lies between −t and t. It is a finite sum:
// Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
func studentWithin(t float64, freedom int) float64 {
	n := float64(freedom)
	theta := math.Atan(t / math.Sqrt(n))
	sin, cos := math.Sin(theta), math.Cos(theta)
	sum, term := 0.0, 1.0
	if freedom%2 == 1 {
		term = cos
		for k := 3; k <= freedom; k += 2 {
			sum += term
			term *= cos * cos * float64(k-1) / float64(k)
		}
		return 2 / math.Pi * (theta + sin*sum)
	}
	for k := 2; k <= freedom; k += 2 {
		sum += term
		term *= cos * cos * float64(k-1) / float64(k)
	}
	return sin * sum
}

// studentT is the t for which studentWithin is the confidence (0 to 1,
// exclusive), found by bisection; NaN where there is none.
func studentT(confidence float64, freedom int) float64 {
	if !(confidence > 0 && confidence < 1) || freedom < 1 {
		return math.NaN()
	}
	lo, hi := 0.0, 1.0
	for studentWithin(hi, freedom) < confidence {
		if lo, hi = hi, 2*hi; math.IsInf(hi, 1) {
			return math.NaN()
		}
	}
	for range 100 {
		if mid := lo + (hi-lo)/2; studentWithin(mid, freedom) < confidence {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}
