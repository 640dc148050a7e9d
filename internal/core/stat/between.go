package stat

import "slices"

// BetweenRuns estimates the variance between runs: the variance of their effects, around the mean
// or around 0, that the variances of the single effects do not explain. It uses the estimator
// Q²/((2f + Q)·C) of Hartung and Makambi (Communications in Statistics: Simulation and
// Computation 32 (2003) 1179–1190) in place of max(Q − f, 0)/C. It is positive unless all
// effects are equal, because a few close effects do not show that runs are alike. If a variance
// is missing, BetweenRuns returns the mean square of the effects.
func BetweenRuns(effects, variances []float64, aroundZero bool) float64 {
	weight, squares, mean := 0.0, 0.0, 0.0
	known := !slices.ContainsFunc(variances, func(v float64) bool { return !(v > 0) })
	of := func(i int) float64 {
		if known {
			return 1 / variances[i]
		}
		return 1
	}
	for i, e := range effects {
		weight, squares, mean = weight+of(i), squares+of(i)*of(i), mean+of(i)*e
	}
	freedom, scale := float64(len(effects)), weight
	if mean /= weight; aroundZero {
		mean = 0
	} else {
		freedom, scale = freedom-1, weight-squares/weight
	}
	q := 0.0
	for i, e := range effects {
		q += of(i) * (e - mean) * (e - mean)
	}
	switch {
	case !(freedom > 0) || q == 0:
		return 0
	case !known:
		return q / freedom
	}
	return q * q / ((2*freedom + q) * scale)
}
