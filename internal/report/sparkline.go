package report

import "math"

// bars are the heights of a sparkline, U+2581 to U+2588.
var bars = []rune("▁▂▃▄▅▆▇█")

// flatWithin is the share of its height within which a line is drawn flat:
// stretched to full height, the noise of a steady figure would look like work.
const flatWithin = 0.02

// sparkline draws values as a line of at most width characters, from their
// least at the bottom to their largest at the top. More values than characters
// are resampled by their mean; a value that is no number leaves a space where
// it has no neighbour to stand for it. A line that does not change is at the
// bottom where it is zero, and at half height elsewhere.
func sparkline(values []float64, width int) string {
	points := resampled(values, width)
	lo, hi := rangeOf(points)
	out := make([]rune, len(points))
	for i, v := range points {
		switch {
		case !finite(v):
			out[i] = ' '
		case lo == 0 && hi == 0:
			out[i] = bars[0]
		case hi-lo <= flatWithin*max(math.Abs(lo), math.Abs(hi)):
			out[i] = bars[len(bars)/2-1]
		default:
			// Halved, since the distance of two huge values has no number.
			height := (v/2 - lo/2) / (hi/2 - lo/2)
			out[i] = bars[min(int(height*float64(len(bars))), len(bars)-1)]
		}
	}
	return string(out)
}

// resampled are at most n means of neighbours of about the same number.
func resampled(values []float64, n int) []float64 {
	n = min(max(n, 0), len(values))
	out := make([]float64, n)
	for i := range out {
		part := values[i*len(values)/n : (i+1)*len(values)/n]
		mean, count := 0.0, 0
		for _, v := range part {
			if finite(v) {
				count++
				mean += (v - mean) / float64(count)
			}
		}
		if count == 0 {
			mean = math.NaN()
		}
		out[i] = mean
	}
	return out
}

// rangeOf is the least and the largest that is a number; NaN without one.
func rangeOf(values []float64) (lo, hi float64) {
	lo, hi = math.NaN(), math.NaN()
	for _, v := range values {
		if !finite(v) {
			continue
		}
		if math.IsNaN(lo) || v < lo {
			lo = v
		}
		if math.IsNaN(hi) || v > hi {
			hi = v
		}
	}
	return lo, hi
}
