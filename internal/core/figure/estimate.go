package figure

import (
	"maps"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/stat"
)

// Confidence of every interval.
const Confidence = 0.95

// Estimate is what values come to: most often their median, with its interval; of
// a line its slope; of a comparison a ratio.
type Estimate struct {
	N       int     `json:"n"` // values that entered; 0: there is no estimate
	Value   float64 `json:"value"`
	Lo      float64 `json:"lo"` // of the interval at [Confidence], when Bounded
	Hi      float64 `json:"hi"`
	Bounded bool    `json:"bounded"` // false: too few values for an interval
}

// Known tells whether there is a value.
func (e Estimate) Known() bool { return e.N > 0 }

func (e Estimate) orNil() *Estimate {
	if !e.Known() || !stat.Finite(e.Value) {
		return nil
	}
	if !stat.Finite(e.Lo) || !stat.Finite(e.Hi) {
		e.Lo, e.Hi, e.Bounded = 0, 0, false
	}
	return &e
}

// Half is the larger half of the interval as a share of the value; +Inf where there
// is no interval, or the value is 0 and the interval is not.
func (e Estimate) Half() float64 {
	return stat.Summary{N: e.N, Median: e.Value, Lo: e.Lo, Hi: e.Hi, Known: e.Bounded}.Precision()
}

// Exactly is a value that was not estimated from several.
func Exactly(v float64) Estimate { return Estimate{N: 1, Value: v, Lo: v, Hi: v} }

// Median estimates the median of what the rounds were drawn from, see
// [stat.Summarize].
func Median(values stat.Rounds) Estimate { return MedianOf(Ordered(values)) }

// MedianOf is [Median] of values without a round.
func MedianOf(values []float64) Estimate {
	s := stat.Summarize(values, Confidence)
	e := Estimate{N: s.N, Bounded: s.Known}
	if s.N > 0 {
		e.Value = s.Median
	}
	if s.Known {
		e.Lo, e.Hi = s.Lo, s.Hi
	}
	return e
}

// Ordered lists the values by round.
func Ordered(values stat.Rounds) []float64 {
	out := make([]float64, 0, len(values))
	for _, r := range slices.Sorted(maps.Keys(values)) {
		out = append(out, values[r])
	}
	return out
}

// ByRound is a figure's Rounds.
func ByRound(values stat.Rounds) []Round {
	out := make([]Round, 0, len(values))
	for _, r := range slices.Sorted(maps.Keys(values)) {
		out = append(out, Round{r, values[r]})
	}
	return out
}

// Values are a figure's rounds as the tests of package stat take them.
func (f *Figure) Values() stat.Rounds {
	values := make(stat.Rounds, len(f.Rounds))
	for _, r := range f.Rounds {
		values[r.Round] = r.Value
	}
	return values
}

// Versus is a comparison with the baseline.
type Versus struct {
	Baseline  string   `json:"baseline"`
	Delta     float64  `json:"delta"`  // ratio of the medians − 1
	Paired    Estimate `json:"paired"` // median ratio within a round − 1
	P         float64  `json:"p"`
	Different bool     `json:"different"`
	Why       string   `json:"why"`
}

// Compare tells how a figure differs from the baseline's, see [stat.Compare]; nil
// where one of them has no rounds, or nothing positive to compare with.
func Compare(baseline string, base, f stat.Rounds) *Versus {
	if len(base) == 0 || len(f) == 0 {
		return nil
	}
	r := stat.Compare(base, f)
	if math.IsNaN(r.Delta) {
		return nil
	}
	v := &Versus{Baseline: baseline, Delta: r.Delta, P: r.P, Different: r.Different, Why: r.Why}
	if !math.IsNaN(r.PairedDelta) {
		v.Paired = Estimate{N: r.Pairs, Value: r.PairedDelta}
	}
	if !math.IsNaN(r.PairedLo) && !math.IsNaN(r.PairedHi) {
		v.Paired.Lo, v.Paired.Hi, v.Paired.Bounded = r.PairedLo, r.PairedHi, true
	}
	return v
}

// PairedRatio is the median of the rounds' own ratios.
func PairedRatio(c stat.Comparison) Estimate {
	if !stat.Finite(c.PairedDelta) {
		return Estimate{}
	}
	e := Estimate{N: c.Pairs, Value: 1 + c.PairedDelta}
	e.Lo, e.Hi = e.Value, e.Value
	if stat.Finite(c.PairedLo) && stat.Finite(c.PairedHi) {
		e.Lo, e.Hi, e.Bounded = 1+c.PairedLo, 1+c.PairedHi, true
	}
	return e
}
