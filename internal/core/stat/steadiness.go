package stat

import (
	"maps"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// Steadiness describes how values changed over the rounds of a run. It covers rows that are
// tested together, such as all operations of a table.
type Steadiness struct {
	Rows  int   // number of rows used
	First Moved // first round ÷ median of all others; P compares it with the fourth and later rounds
	Half  Moved // median of the second half of the rounds ÷ that of the first half
}

// Moved is the difference between some rounds and others.
type Moved struct {
	Ratio float64 // geometric mean over the rows; NaN without rows
	P     float64 // two-sided, adjusted for the other tests of the record; 1 without a test
	Found bool    // P is below 0.01, and Ratio differs from 1 by at least 5 %
}

const farthest = 4 // largest score; it limits the weight of an outlier

// SteadinessOf tests whether the first round differs from the others, such as after a short
// warm-up. It also tests whether the rounds drifted, such as when page caches fill or a processor
// heats up. Each is one test over all rows, at the level 0.01 divided by the number of tests.
//
// The score of a value is the distance of its logarithm from the row's median, in robust
// standard deviations. The score of a round is the mean over the rows. So noise in a single
// row has little weight, and an effect on all rows counts once. Student's t is applied to the
// scores of the rounds:
//   - The first round is compared with the fourth and later ones, because the second and third
//     may be cold too. It must be outside the range of all of them.
//   - The halves are compared by the deviations from their means, or from a line through all
//     rounds. Dependent rounds count for fewer, see [CompareAll].
//
// Rows with fewer than 10 values, or with a value that is not positive, are skipped.
// docs/statistics.md has the rates of false findings.
func SteadinessOf(rows []Rounds, tests int) Steadiness {
	c := Steadiness{First: Moved{math.NaN(), 1, false}, Half: Moved{math.NaN(), 1, false}}
	var first, half float64
	var firsts int
	sum, n := map[int]float64{}, map[int]float64{}
	rest := [][]float64{nil} // scores without the movement: of all rows together, then of each row
	for _, row := range rows {
		rounds, scores, logs, ok := scored(row)
		if !ok {
			continue
		}
		c.Rows++
		middle := len(logs) / 2
		half += middleOf(logs[len(logs)-middle:]) - middleOf(logs[:middle])
		if rounds[0] == 0 {
			first, firsts = first+logs[0]-middleOf(logs[1:]), firsts+1
		}
		for i, r := range rounds {
			sum[r], n[r] = sum[r]+scores[i], n[r]+1
		}
		rest = append(rest, unmoved(scores))
	}
	var scores []float64
	for _, r := range slices.Sorted(maps.Keys(sum)) {
		scores = append(scores, sum[r]/n[r])
	}
	if c.Rows == 0 {
		return c
	}
	rest[0] = unmoved(scores)
	levels := slices.Repeat([]int{2}, len(rest))
	c.Half = moved(half/float64(c.Rows), halves(scores, rest[0], correlations(rest, levels...)[0]), tests)
	if firsts > 0 {
		c.First = moved(first/float64(firsts), firstOf(scores), tests)
	}
	return c
}

func moved(log, p float64, tests int) Moved {
	ratio, p := math.Exp(log), min(1, p*float64(max(tests, 1)))
	return Moved{ratio, p, p < findingAlpha && apart(ratio)}
}

// apart reports whether a ratio differs from 1 by at least 5 %. It reports false for NaN.
func apart(ratio float64) bool {
	return ratio >= 1+worthSaying || ratio <= 1/(1+worthSaying)
}

// scored returns the finite values of a row as logarithms and as scores.
func scored(row Rounds) (rounds []int, scores, logs []float64, ok bool) {
	for _, r := range slices.Sorted(maps.Keys(row)) {
		switch v := row[r]; {
		case !Finite(v):
		case v <= 0:
			return nil, nil, nil, false
		default:
			rounds, logs = append(rounds, r), append(logs, math.Log(v))
		}
	}
	if len(logs) < minModes {
		return nil, nil, nil, false
	}
	middle, off := deviations(logs)
	// 1.4826 converts a median absolute deviation of normal values to a standard deviation.
	// Rounded values have a scatter of at least one rounding step.
	scatter := max(1.4826*middleOf(off), step(slices.Sorted(slices.Values(logs))))
	for _, v := range logs {
		score := 0.0 // 0 if all values of the row are equal
		if v != middle {
			score = min(max((v-middle)/scatter, -farthest), farthest)
		}
		scores = append(scores, score)
	}
	return rounds, scores, logs, true
}

// unmoved removes the movement over the rounds from the values. The movement is a step at the
// half or a line, whichever leaves the smaller variance.
func unmoved(values []float64) []float64 {
	stepped, line := slices.Clone(values), slices.Clone(values)
	half := len(values) / 2
	for _, part := range [][]float64{stepped[:half], stepped[half:]} {
		mean := stats.Mean(part)
		for i := range part {
			part[i] -= mean
		}
	}
	mean, slope, squares, at := stats.Mean(values), 0.0, 0.0, func(i int) float64 { return float64(i) - float64(len(values)-1)/2 }
	for i, v := range values {
		slope, squares = slope+at(i)*v, squares+at(i)*at(i)
	}
	for i := range line {
		line[i] -= mean + slope/squares*at(i)
	}
	if stats.Variance(line) < stats.Variance(stepped) {
		return line
	}
	return stepped
}

// halves returns the p-value for equal halves. rest are the scores without the movement.
func halves(scores, rest []float64, rho float64) float64 {
	n := len(scores) / 2
	count := effective(2*n, rho)
	variance := stats.Variance(rest) * float64(len(rest)-1) / float64(len(rest)-2) // two parameters were fitted
	return studentP(stats.Mean(scores[len(scores)-n:])-stats.Mean(scores[:n]), 2*math.Sqrt(variance/count), max(fewestEffective, count-2))
}

// firstOf returns the p-value for a first score equal to the fourth and later ones.
func firstOf(scores []float64) float64 {
	others := scores[3:]
	off := scores[0] - stats.Mean(others)
	if scores[0] >= slices.Min(others) && scores[0] <= slices.Max(others) {
		return 1
	}
	n := float64(len(others))
	return studentP(off, math.Sqrt(stats.Variance(others)*(1+1/n)), n-1)
}

// studentP returns the two-sided p-value of a distance with the given standard error.
func studentP(off, unsure, freedom float64) float64 {
	switch {
	case off == 0:
		return 1
	case !(unsure > 0):
		return 0
	}
	return 2 * stats.TDist{V: freedom}.CDF(-math.Abs(off)/unsure)
}

// step returns the smallest distance between two different values of a sorted sample, or 0.
func step(sorted []float64) float64 {
	least := 0.0
	for i := 1; i < len(sorted); i++ {
		if d := sorted[i] - sorted[i-1]; d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}
