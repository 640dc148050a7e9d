package stat

import (
	"fmt"
	"math"
	"slices"
)

// Fit is a straight line through points. Slope is in units of y per unit of x.
type Fit struct {
	N      int // number of points used
	Rounds int // number of rounds with a slope

	Slope     float64
	SlopeLo   float64 // interval of the slope, if Known
	SlopeHi   float64
	Intercept float64 // value of the line at x = 0
	Known     bool

	// Robust is the slope by Theil and Sen, which tolerates up to 29 % outliers. Disagree
	// reports whether it is outside of the interval and differs from Slope by more than a
	// twentieth. The points are then not on a line, or some are outliers.
	Robust   float64
	Disagree bool

	Warnings []string
}

// Point is a value y at a position x.
type Point struct{ X, Y float64 }

// line fits a line by least squares, without an interval: see [LineOfRounds]. All results are
// NaN if the values are at fewer than 2 positions.
func line(all []Point) Fit {
	points := slices.DeleteFunc(slices.Clone(all), func(p Point) bool { return !Finite(p.X) || !Finite(p.Y) })
	nan := math.NaN()
	f := Fit{N: len(points), Slope: nan, SlopeLo: nan, SlopeHi: nan, Intercept: nan, Robust: nan}
	if left := len(all) - f.N; left > 0 {
		f.Warnings = append(f.Warnings, fmt.Sprintf("skipped %d of %d values, which are not finite", left, len(all)))
	}
	n := float64(f.N)
	var mx, my, sxx, sxy float64
	for _, p := range points {
		mx, my = mx+p.X/n, my+p.Y/n
	}
	for _, p := range points {
		sxx, sxy = sxx+(p.X-mx)*(p.X-mx), sxy+(p.X-mx)*(p.Y-my)
	}
	if !(sxx > 0) {
		f.Warnings = append(f.Warnings, "a line needs values at two places")
		return f
	}
	f.Slope = sxy / sxx
	f.Intercept = my - f.Slope*mx
	f.Robust = middleOf(slopesOf(points))
	return f
}

// LineOfRounds fits a line to values of several rounds.
//
// The values of one round share its start, such as the memory in use and a daemon's heap. So
// they are not independent: twenty points of three rounds are not twenty observations. Each
// round with values at 2 positions has a slope by least squares, and these slopes are the
// sample. From [MinRounds] rounds on, the result is their median with its interval
// ([Summarize]), without assumptions on the distribution. With fewer rounds, but at least 2, it
// is their mean with Student's interval, which assumes normal slopes. No other interval exists
// for so few. A single round has a slope without an interval.
func LineOfRounds(rounds [][]Point, confidence float64) Fit {
	var all []Point
	var slopes []float64
	for _, points := range rounds {
		all = append(all, points...)
		if f := line(points); Finite(f.Slope) {
			slopes = append(slopes, f.Slope)
		}
	}
	f := line(all)
	f.Rounds = len(slopes)
	if f.Rounds < 2 {
		if f.Rounds == 1 {
			f.Warnings = append(f.Warnings, "one round: the variation between rounds is unknown, so there is no interval")
		}
		return f
	}
	var within []float64
	for _, points := range rounds {
		within = append(within, slopesOf(points)...)
	}
	f.Robust = middleOf(within)
	if f.Rounds >= MinRounds(confidence) {
		s := Summarize(slopes, confidence)
		f.Slope, f.SlopeLo, f.SlopeHi, f.Known = s.Median, s.Lo, s.Hi, s.Known
	} else {
		n := float64(f.Rounds)
		mean, rest := 0.0, 0.0
		for _, s := range slopes {
			mean += s / n
		}
		for _, s := range slopes {
			rest += (s - mean) * (s - mean)
		}
		half := studentT(confidence, float64(f.Rounds-1)) * math.Sqrt(rest/(n-1)/n)
		f.Slope, f.SlopeLo, f.SlopeHi, f.Known = mean, mean-half, mean+half, Finite(half)
	}
	var at []float64
	for _, p := range all {
		if Finite(p.X) && Finite(p.Y) {
			at = append(at, p.Y-f.Slope*p.X)
		}
	}
	f.Intercept = middleOf(at)
	outside := f.Robust < f.SlopeLo || f.Robust > f.SlopeHi
	f.Disagree = f.Known && outside && math.Abs(f.Robust-f.Slope) > worthSaying*math.Abs(f.Slope)
	return f
}

// slopesOf returns the slopes between all pairs of points at different positions. Their median
// is robust (Sen, Estimates of the Regression Coefficient Based on Kendall's Tau, JASA 63
// (1968) 1379–1389).
func slopesOf(points []Point) []float64 {
	var slopes []float64
	for i, p := range points {
		for _, q := range points[:i] {
			if s := (p.Y - q.Y) / (p.X - q.X); Finite(s) {
				slopes = append(slopes, s)
			}
		}
	}
	return slopes
}
