package stat

// dip returns the largest distance between the distribution function of the sorted values and
// the closest unimodal one: 0 to 1/4, larger for less unimodal samples. It is 0 if all values
// are equal, else at least 1/(2n).
//
// A unimodal distribution function is convex up to its mode and concave after it. The greatest
// convex minorant and the least concave majorant enclose the function of the sample. Their
// largest distance bounds the interval of the mode. This interval is searched again until the
// hulls differ more from the sample outside of it than from each other inside.
//
// See J. A. Hartigan and P. M. Hartigan, The Dip Test of Unimodality, Annals of Statistics 13
// (1985) 70–84. Tied values are steps of one at the same position, as in P. M. Hartigan,
// Algorithm AS 217, Applied Statistics 34 (1985) 320–325.
func dip(sorted []float64) float64 {
	n := len(sorted)
	if n < 2 || sorted[0] == sorted[n-1] {
		return 0
	}
	at, before := sorted, make([]float64, n) // number of values before each value
	for i := range before {
		before[i] = float64(i)
	}
	distance := 1.0 // twice the dip, in number of values; at least one step
	for {
		// under touches the lower ends of the steps, over the upper ends, one higher.
		under, over := minorant(at, before), majorant(at, before)
		left, right, apart := widest(under, over)
		if apart+1 <= distance {
			break
		}
		for i := range at {
			if i <= left {
				distance = max(distance, before[i]+1-under.value[i])
			}
			if i >= right {
				distance = max(distance, over.value[i]+1-before[i])
			}
		}
		if left == 0 && right == len(at)-1 {
			break
		}
		at, before = at[left:right+1], before[left:right+1]
	}
	return distance / (2 * float64(n))
}

// hull is a convex or concave function over the values, and the ascending indexes of the
// values that it touches.
type hull struct {
	value   []float64
	touches []int
}

// minorant returns the greatest convex function that is not above y.
func minorant(x, y []float64) hull {
	var touches []int
	for i := range x {
		for len(touches) >= 2 {
			a, b := touches[len(touches)-2], touches[len(touches)-1]
			if (y[b]-y[a])*(x[i]-x[b]) < (y[i]-y[b])*(x[b]-x[a]) {
				break // the slope rises at b
			}
			touches = touches[:len(touches)-1]
		}
		touches = append(touches, i)
	}
	value := make([]float64, len(x))
	value[0] = y[0]
	for t := 1; t < len(touches); t++ {
		a, b := touches[t-1], touches[t]
		slope := 0.0 // slope of 0 for ties
		if x[b] > x[a] {
			slope = (y[b] - y[a]) / (x[b] - x[a])
		}
		for i := a + 1; i < b; i++ {
			value[i] = y[a] + slope*(x[i]-x[a])
		}
		value[b] = y[b]
	}
	return hull{value, touches}
}

// majorant returns the least concave function that is not below y.
func majorant(x, y []float64) hull {
	h := minorant(x, negative(y))
	h.value = negative(h.value)
	return h
}

func negative(y []float64) []float64 {
	out := make([]float64, len(y))
	for i, v := range y {
		out[i] = -v
	}
	return out
}

// widest returns the interval with the largest distance between the hulls, where one of them
// touches the sample. The mode lies between that point and the next point at which the other
// hull touches it. It comes after the point if the lower hull touches, else before it.
func widest(under, over hull) (left, right int, apart float64) {
	next := 0
	for _, i := range under.touches {
		for over.touches[next] < i {
			next++
		}
		if d := over.value[i] - under.value[i]; d > apart {
			left, right, apart = i, over.touches[next], d
		}
	}
	previous := 0
	for _, i := range over.touches {
		for previous+1 < len(under.touches) && under.touches[previous+1] <= i {
			previous++
		}
		if d := over.value[i] - under.value[i]; d > apart {
			left, right, apart = under.touches[previous], i, d
		}
	}
	return left, right, apart
}
