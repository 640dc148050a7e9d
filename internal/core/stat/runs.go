package stat

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// run returns the index of the run that contains a round.
func (s *Sides) run(round int) int {
	if s.PerRun <= 0 {
		return 0
	}
	return round / s.PerRun
}

// FewestRuns is the smallest number of runs per side for a verdict on their spread.
const FewestRuns = 3

// Variance returns the variance of a sample.
func Variance(values []float64) float64 { return stats.Variance(values) }

func severalRuns(run []int) bool { return len(run) > 0 && slices.Max(run) != slices.Min(run) }

// ofRuns reduces the values of each run to one value. run is the run of each value.
func ofRuns(values []float64, run []int, reduce func([]float64) float64) (out []float64) {
	for from := 0; from < len(values); {
		to := from + 1
		for to < len(values) && run[to] == run[from] {
			to++
		}
		out = append(out, reduce(values[from:to]))
		from = to
	}
	return out
}

func hodgesLehmann(d []float64) float64 { return walsh(d).median() }

// acrossRuns compares sides with several runs. Each run has one logarithm: its median, or its
// shift if it has both sides. Rounds of one run share its boot, memory layout and neighbours, so
// they do not show the variation between runs. A run counts once, however many rounds it has.
// The test is Student's t on the values of the runs, with n − 1 degrees of freedom if runs have
// both sides, else Welch's. A side with one run is assumed to have the variance of the other.
// known is false if the variance of the runs is unknown.
//
// References: Kalibera and Jones, Rigorous benchmarking in reasonable time, ISMM 2013 (the
// interval of a multi-level design is that of the means at its highest level); Welch, Biometrika
// 34 (1947) 28–35; Satterthwaite, Biometrics Bulletin 2 (1946) 110–114. The intervals of a
// hierarchical bootstrap (Davison and Hinkley, Bootstrap Methods, 1997, 3.8) are too narrow with
// 5 runs, see docs/statistics.md.
func (c *Comparison) acrossRuns(s scaled, alpha float64) (test tested, middle, lo, hi float64, known bool) {
	if !c.Runs {
		return nil, 0, 0, 0, false
	}
	var variance, freedom float64
	if c.Pairs > 0 {
		middle = stats.Mean(s.differences)
		variance, freedom = stats.Variance(s.differences)/float64(c.Pairs), float64(c.Pairs-1)
	} else {
		middle = stats.Mean(s.new) - stats.Mean(s.old)
		variance, freedom = welch(stats.Variance(s.old), stats.Variance(s.new), float64(c.N1), float64(c.N2))
	}
	if !(variance > 0) || !(freedom > 0) {
		return nil, 0, 0, 0, false
	}
	test, lo, hi = studentTest(middle, math.Sqrt(variance), freedom, alpha)
	return test, middle, lo, hi, true
}

// betweenRuns adds the variance between runs to that of the rounds, if each side has one run. The
// test is Student's t with Satterthwaite's degrees of freedom. With too few rounds for an
// interval, the p-values are 1.
func (c *Comparison) betweenRuns(s scaled, middle, lo, hi, alpha float64) (tested, float64, float64) {
	if !Finite(lo) || !Finite(hi) {
		return func(float64) (less, greater float64) { return 1, 1 }, lo, hi
	}
	rounds := (hi - lo) / 2 / stats.StdNormal.InvCDF(1-alpha/2)
	variance := rounds*rounds + s.between
	freedom := variance * variance / (rounds*rounds*rounds*rounds/float64(max(c.N1+c.N2-2, 1)) + s.between*s.between/max(s.freedom, 1))
	return studentTest(middle, math.Sqrt(variance), freedom, alpha)
}

// welch returns the variance of the difference of two means and its degrees of freedom.
func welch(v1, v2, n1, n2 float64) (variance, freedom float64) {
	switch {
	case n1 < 2:
		return v2 * (1/n1 + 1/n2), n2 - 1
	case n2 < 2:
		return v1 * (1/n1 + 1/n2), n1 - 1
	}
	a, b := v1/n1, v2/n2
	return a + b, (a + b) * (a + b) / (a*a/(n1-1) + b*b/(n2-1))
}
