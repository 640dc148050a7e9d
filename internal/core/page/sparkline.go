package page

import (
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/stat"
)

// Limits of the length of a line in a table. The line fills the width that is left.
const (
	shortestLine = 12
	longestLine  = 48
)

// AddSeries appends a column whose cells show the series of their figures as lines.
func (t *Table) AddSeries(title string, cells []Cell) {
	t.addColumn(Column{Title: title, Series: true}, cells)
}

// drawn returns the table with its series drawn as lines. The lines fill the remaining width.
// If columns is 0, the width is unlimited.
func (t *Table) drawn(columns int) *Table {
	isSeries := func(c Column) bool { return c.Series }
	if !slices.ContainsFunc(t.Columns, isSeries) {
		return t
	}
	length := longestLine
	if columns > 0 {
		length = min(max(columns-t.width(false), shortestLine), longestLine)
	}
	out := &Table{Columns: t.Columns, Sparse: t.Sparse, Indent: t.Indent}
	for _, row := range t.Rows {
		row = slices.Clone(row)
		for i, c := range t.Columns {
			if f := row[i].Figure; c.Series && f != nil && f.Series != nil {
				row[i].Head = sparkline(f.Series.Values, length)
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// bars are the characters of a sparkline, U+2581 to U+2588.
var bars = []rune("▁▂▃▄▅▆▇█")

// flatWithin is the relative range below which a line is flat. At full height, the noise of a
// steady figure would look like activity.
const flatWithin = 0.02

// sparkline draws values as a line of at most width characters, scaled from the minimum to the
// maximum. If there are more values than characters, each character is the mean of several.
// A character without a finite value is a space. A constant line is at the bottom if it is
// zero, otherwise at half height.
func sparkline(values []float64, width int) string {
	points := resampled(values, width)
	lo, hi := Range(points)
	out := make([]rune, len(points))
	for i, v := range points {
		switch {
		case !stat.Finite(v):
			out[i] = ' '
		case lo == 0 && hi == 0:
			out[i] = bars[0]
		case hi-lo <= flatWithin*max(math.Abs(lo), math.Abs(hi)):
			out[i] = bars[len(bars)/2-1]
		default:
			// Halve first: the difference of two huge values overflows.
			height := (v/2 - lo/2) / (hi/2 - lo/2)
			out[i] = bars[min(int(height*float64(len(bars))), len(bars)-1)]
		}
	}
	return string(out)
}

// resampled returns at most n means, each of about the same number of adjacent values.
func resampled(values []float64, n int) []float64 {
	n = min(max(n, 0), len(values))
	out := make([]float64, n)
	for i := range out {
		part := values[i*len(values)/n : (i+1)*len(values)/n]
		mean, count := 0.0, 0
		for _, v := range part {
			if stat.Finite(v) {
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

// Range returns the smallest and the largest finite value, or NaN without one.
func Range(values []float64) (lo, hi float64) {
	finite := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !stat.Finite(v) })
	if len(finite) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(finite), slices.Max(finite)
}

// Course draws values as a line with a stroke before each change.
func Course(values []float64, changes []int) string {
	line := []rune(sparkline(values, longestLine))
	drawn := len(line)
	for _, at := range slices.Backward(changes) {
		line = slices.Insert(line, at*drawn/len(values), '│')
	}
	return string(line)
}
