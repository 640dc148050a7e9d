package stat

// BetweenRuns estimates by how much effects scatter beyond what each one's own variance
// explains: around their mean, or around 0. It is never 0 unless all effects are equal, since
// a few that lie close together do not show that runs do not differ: Q²/((2f + Q)·C) in place
// of max(Q − f, 0)/C (Hartung and Makambi, Communications in Statistics: Simulation and
// Computation 32 (2003) 1179–1190). If one has no variance of its own, it is their mean square.
func BetweenRuns(effects, own []float64, aroundZero bool) float64 {
	weight, squares, mean := 0.0, 0.0, 0.0
	known := true
	for _, v := range own {
		known = known && v > 0
	}
	of := func(i int) float64 {
		if known {
			return 1 / own[i]
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
