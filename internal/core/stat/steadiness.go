package stat

import (
	"maps"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// Steadiness is how rows that are read together, such as all operations of a table, moved
// over the rounds of a run.
type Steadiness struct {
	Rows  int   // that entered
	First Moved // the first round ÷ the median of all others; P is against those from the fourth on
	Half  Moved // the median of the second half of the rounds ÷ that of the first
}

// Moved is by how much some rounds differ from others.
type Moved struct {
	Ratio float64 // geometric mean over the rows; NaN where there are none
	P     float64 // two-sided, adjusted for the other tests of the record; 1 where there is no test
	Found bool    // P is below 0.01, and Ratio 5 % or more off
}

// farthest is where scores are cut, so that one outlier of one row weighs no more than
// four standard deviations of it.
const farthest = 4

// SteadinessOf tests whether the first round is unlike the others, as when the warm-up was
// too short, and whether the rounds drifted: page caches that fill, a processor that
// heats up. Each is one test for all rows, at 0.01 divided by the number of such tests
// that are read together.
//
// A value's score is the distance of its logarithm from the row's median, in robust
// standard deviations; a round's score is the mean over the rows. What one row does by
// chance hardly moves that mean, and what a round does to all rows counts once, however
// many there are. Student's t of the rounds' scores decides:
//   - The first round is compared with those from the fourth on, since the second and
//     third may be cold too, and has to lie beyond all of them.
//   - The halves are compared by what scatters about them, or about a line through all
//     rounds. Rounds that depend on those before them count for fewer, see [CompareAll].
//
// Rows with fewer than 10 values, or one that is not positive, do not enter. Docs:
// docs/statistics.md has how often a quiet run is called otherwise.
func SteadinessOf(rows []Rounds, tests int) Steadiness {
	c := Steadiness{First: Moved{math.NaN(), 1, false}, Half: Moved{math.NaN(), 1, false}}
	var first, half float64
	var firsts int
	sum, n := map[int]float64{}, map[int]float64{}
	rest := [][]float64{nil} // scores without what moved, of all rows together and of each
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

// apart reports whether a ratio is 5 % or more away from 1, either way; NaN is not.
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
	// 1.4826 makes of a normal sample's deviation its standard deviation. What was
	// rounded scatters at least by its steps.
	scatter := max(1.4826*middleOf(off), step(slices.Sorted(slices.Values(logs))))
	for _, v := range logs {
		score := 0.0 // of rows without any scatter
		if v != middle {
			score = min(max((v-middle)/scatter, -farthest), farthest)
		}
		scores = append(scores, score)
	}
	return rounds, scores, logs, true
}

// unmoved returns the values without what moved them over the rounds: a step at the
// half or a line, whichever leaves less.
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

// halves is the p-value of equal halves, what moves them being taken off the rest.
func halves(scores, rest []float64, rho float64) float64 {
	n := len(scores) / 2
	count := effective(2*n, rho)
	variance := stats.Variance(rest) * float64(len(rest)-1) / float64(len(rest)-2) // two were fitted
	return studentP(stats.Mean(scores[len(scores)-n:])-stats.Mean(scores[:n]), 2*math.Sqrt(variance/count), max(fewestEffective, count-2))
}

// firstOf is the p-value of a first score that is like those from the fourth on.
func firstOf(scores []float64) float64 {
	others := scores[3:]
	off := scores[0] - stats.Mean(others)
	if scores[0] >= slices.Min(others) && scores[0] <= slices.Max(others) {
		return 1
	}
	n := float64(len(others))
	return studentP(off, math.Sqrt(stats.Variance(others)*(1+1/n)), n-1)
}

// studentP is the two-sided p-value of a distance with this standard error.
func studentP(off, unsure, freedom float64) float64 {
	switch {
	case off == 0:
		return 1
	case !(unsure > 0):
		return 0
	}
	return 2 * stats.TDist{V: freedom}.CDF(-math.Abs(off)/unsure)
}

// step is the smallest distance between two different values of a sorted sample; 0
// where all are equal.
func step(sorted []float64) float64 {
	least := 0.0
	for i := 1; i < len(sorted); i++ {
		if d := sorted[i] - sorted[i-1]; d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}
