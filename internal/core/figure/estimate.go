package figure

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/stat"
)

// Confidence is the confidence level of every interval.
const Confidence = 0.95

// Estimate is a point estimate with its confidence interval. It is usually a median. For a
// line it is the slope, and for a comparison the ratio.
type Estimate struct {
	N       int // number of values used; 0: unknown
	Value   float64
	Lo      float64 // lower bound of the interval at [Confidence], if Bounded
	Hi      float64
	Bounded bool // false: too few values for an interval

	// Widened is the factor by which the interval was widened because rounds depend on
	// earlier ones. It is 1 or less if the interval was not widened.
	Widened float64
}

// Known reports whether there is a value.
func (e Estimate) Known() bool { return e.N > 0 }

// written is the JSON form of an Estimate. It omits an unknown interval, because a 0
// would read as a bound.
type written struct {
	N       int      `json:"n"`
	Value   float64  `json:"value"`
	Lo      *float64 `json:"lo,omitempty"`
	Hi      *float64 `json:"hi,omitempty"`
	Bounded bool     `json:"bounded"`
	Widened float64  `json:"widened,omitempty"` // omitted unless above 1
}

func (e Estimate) orNil() *written {
	if !e.Known() || !stat.Finite(e.Value) {
		return nil
	}
	out := &written{N: e.N, Value: e.Value}
	if e.Bounded && stat.Finite(e.Lo) && stat.Finite(e.Hi) {
		out.Lo, out.Hi, out.Bounded = &e.Lo, &e.Hi, true
		if e.Widened > 1 {
			out.Widened = e.Widened
		}
	}
	return out
}

// Exactly returns v as an estimate from a single value, with an interval of width 0.
func Exactly(v float64) Estimate { return Estimate{N: 1, Value: v, Lo: v, Hi: v} }

// Median estimates the true median from a sample of rounds, see [stat.SummarizeRounds].
func Median(values stat.Rounds) Estimate {
	return summary(stat.SummarizeRounds(Ordered(values), Confidence))
}

// Most returns the maximum of the values. It suits a quantity that should be 0.
func Most(values stat.Rounds) Estimate {
	if len(values) == 0 {
		return Estimate{}
	}
	return Estimate{N: len(values), Value: slices.Max(Ordered(values))}
}

// MedianOf estimates the median of values without round numbers.
func MedianOf(values []float64) Estimate { return summary(stat.Summarize(values, Confidence)) }

func summary(s stat.Summary) Estimate {
	e := Estimate{N: s.N, Bounded: s.Known, Widened: s.Widened}
	if s.N > 0 {
		e.Value = s.Median
	}
	if s.Known {
		e.Lo, e.Hi = s.Lo, s.Hi
	}
	return e
}

// Slope returns the slope of a fitted line. Without a valid fit it returns an empty
// estimate.
func Slope(f stat.Fit) Estimate {
	e := Estimate{N: f.N, Value: f.Slope, Bounded: f.Known}
	if math.IsNaN(f.Slope) {
		return Estimate{}
	}
	if f.Known {
		e.Lo, e.Hi = f.SlopeLo, f.SlopeHi
	}
	return e
}

// Ordered returns the values in the order of their rounds.
func Ordered(values stat.Rounds) []float64 {
	out := make([]float64, 0, len(values))
	for _, r := range slices.Sorted(maps.Keys(values)) {
		out = append(out, values[r])
	}
	return out
}

// ByRound converts values to the Rounds field of a figure.
func ByRound(values stat.Rounds) []Round {
	out := make([]Round, 0, len(values))
	for _, r := range slices.Sorted(maps.Keys(values)) {
		out = append(out, Round{r, values[r]})
	}
	return out
}

// Values returns the figure's rounds in the form that package stat uses.
func (f *Figure) Values() stat.Rounds {
	values := make(stat.Rounds, len(f.Rounds))
	for _, r := range f.Rounds {
		values[r.Round] = r.Value
	}
	return values
}

// Versus is the result of a comparison with the baseline, see [stat.CompareAll].
type Versus struct {
	Baseline string       `json:"baseline"`
	Shift    Estimate     `json:"shift"` // relative to the baseline, within a round: 0.05 is 5 % more
	P        float64      `json:"p"`
	Adjusted float64      `json:"p_adjusted"` // P adjusted for all comparisons of the table
	Margin   float64      `json:"margin"`     // differences below it count as equal
	Widened  float64      `json:"widened"`    // factor on the interval for rounds that depend on earlier ones; 1: not widened
	Verdict  stat.Verdict `json:"verdict"`
	Why      string       `json:"why"`
	Of       string       `json:"of"`              // how values were paired, see [Compared]
	Bound    string       `json:"bound,omitempty"` // [AtMost] or [AtLeast] if one of the values is an upper bound
}

// MarshalJSON omits an unknown shift.
func (v Versus) MarshalJSON() ([]byte, error) {
	type plain Versus
	return json.Marshal(struct {
		plain
		Shift *written `json:"shift,omitempty"`
	}{plain(v), v.Shift.orNil()})
}

// RoundsFor returns the number of rounds that a table with this many comparisons needs.
// It returns 0 for 0 comparisons.
func (how Comparing) RoundsFor(comparisons int) int {
	if comparisons == 0 {
		return 0
	}
	return stat.RoundsFor(comparisons, how.Adjust)
}

// Enough returns rounds, the number set in a plan. If it is 0, Enough returns the number of
// rounds needed for an interval and for a significant difference in each comparison.
func (how Comparing) Enough(rounds, comparisons int) int {
	return cmp.Or(rounds, max(how.RoundsFor(comparisons), stat.RoundsFor(1, stat.Raw)))
}

// Different reports whether the comparison showed a difference.
func (v *Versus) Different() bool { return v != nil && v.Verdict == stat.Different }

// Ratio returns the value divided by the baseline's value.
func (v *Versus) Ratio() Estimate {
	if v == nil || !v.Shift.Known() {
		return Estimate{}
	}
	e := v.Shift
	e.Value, e.Lo, e.Hi = 1+e.Value, 1+e.Lo, 1+e.Hi
	return e
}

// Comparing holds the reader's settings for comparisons.
type Comparing struct {
	Margin float64         `json:"margin,omitempty"` // 0: [stat.DefaultMargin]
	Adjust stat.Adjustment `json:"adjust,omitempty"` // "": [stat.Holm]
}

// Pair is a figure and its baseline.
type Pair struct{ Base, Figure *Figure }

// Compare sets the Versus of each figure in the pairs of one table. A figure gets none if one
// side of its pair has no rounds, or if both sides are upper bounds.
func (how Comparing) Compare(baseline string, table []Pair) {
	sides := make([]stat.Sides, len(table))
	for i, p := range table {
		if !p.bounds() {
			sides[i] = stat.Sides{Old: p.Base.Values(), New: p.Figure.Values()}
		}
	}
	for i, v := range how.Versus(baseline, sides) {
		table[i].Figure.Versus = table[i].Known(v)
	}
}

// bounds reports whether both figures are upper bounds.
func (p Pair) bounds() bool { return p.Base.AtMost && p.Figure.AtMost }

// Unproven returns the reason why the order of the figure and its base is unknown, or "". The
// true value behind an upper bound may be any smaller value. below reports whether the figure
// is the smaller one.
func (p Pair) Unproven(below bool) string {
	switch {
	case p.bounds():
		return "both are only upper bounds (≤), which cannot be compared"
	case p.Figure.AtMost && !below:
		return "it is only an upper bound (≤) and may be less"
	case p.Base.AtMost && below:
		return "the baseline is only an upper bound (≤) and may be less"
	}
	return ""
}

// Known returns the valid part of a comparison. It returns nil for two upper bounds;
// for one, it keeps the verdict only if the bound proves it.
func (p Pair) Known(v *Versus) *Versus {
	switch {
	case v == nil || p.bounds():
		return nil
	case p.Figure.AtMost:
		v.Bound = AtMost
	case p.Base.AtMost:
		v.Bound = AtLeast
	default:
		return v
	}
	why := p.Unproven(v.Shift.Value < 0)
	if why == "" && (v.Verdict == stat.Same || !v.Shift.Known()) {
		why = "one of the two values is only an upper bound (≤)"
	}
	if why != "" && v.Verdict != stat.Undecided {
		v.Verdict, v.Why = stat.Undecided, why
	}
	return v
}

// Row is one quantity of several targets, in the targets' order. The entry of a target
// without the quantity is nil.
type Row struct {
	Name string
	Of   []*Figure
}

// Rows are the input of one comparison table: the targets' names, and the index of the
// baseline.
type Rows struct {
	Names []string
	At    int // index of the baseline in Names; -1: no baseline
	Rows  []Row
}

// Pairs returns each figure of the rows paired with the baseline's figure.
func (t *Rows) Pairs() (out []Pair) {
	for _, row := range t.Rows {
		for i, f := range row.Of {
			if i != t.At {
				out = append(out, Pair{row.Of[t.At], f})
			}
		}
	}
	return out
}

// Paired reports whether a and b have a common round. A shift within a round needs one.
func Paired(a, b stat.Rounds) bool {
	for round := range a {
		if _, both := b[round]; both {
			return true
		}
	}
	return false
}

// CompareRows compares each figure of the rows with the baseline's figure, within rounds. A
// figure without a common round gets no Versus.
func (how Comparing) CompareRows(t Rows) {
	if t.At < 0 {
		return
	}
	how.Compare(t.Names[t.At], slices.DeleteFunc(t.Pairs(), func(p Pair) bool {
		return p.Base == nil || p.Figure == nil || !Paired(p.Base.Values(), p.Figure.Values())
	}))
}

// Quotient is a figure of ratios: a target's values divided by those of the base.
type Quotient struct {
	Figure       *Figure
	Base, Values stat.Rounds
}

// Ratios sets the estimate and the Versus of each quotient in one table.
func (how Comparing) Ratios(baseline string, table []Quotient) {
	sides := make([]stat.Sides, len(table))
	for i, q := range table {
		sides[i] = stat.Sides{Old: q.Base, New: q.Values}
	}
	for i, v := range how.Versus(baseline, sides) {
		if f := table[i].Figure; v != nil {
			f.Versus, f.Estimate, f.Reasons = v, v.Ratio(), []string{v.Why}
		}
	}
}

// Versus compares the sides of one table. The result is nil for a side without values. It is
// also nil if both sides are 0 in every round, because such a test would only reduce the power
// of the others.
func (how Comparing) Versus(baseline string, table []stat.Sides) []*Versus {
	out := make([]*Versus, len(table))
	var sides []stat.Sides
	var at []int
	for i, s := range table {
		if len(s.Old) > 0 && len(s.New) > 0 && !(allZero(s.Old) && allZero(s.New)) {
			sides, at = append(sides, s), append(at, i)
		}
	}
	for i, c := range stat.CompareAll(sides, how.Margin, how.Adjust) {
		out[at[i]] = Compared(baseline, &c)
	}
	return out
}

func allZero(values stat.Rounds) bool {
	for _, v := range values {
		if v != 0 {
			return false
		}
	}
	return true
}

// How the values of a comparison were paired: two values of each round, rounds of two runs,
// summaries of runs, or target ÷ control in the rounds of two runs.
const (
	OfPairs   = "pairs"
	OfRounds  = "rounds"
	OfRuns    = "runs"
	OfControl = "control"
)

// Compared converts a comparison with the baseline to a Versus.
func Compared(baseline string, c *stat.Comparison) *Versus {
	v := &Versus{Baseline: baseline, P: c.P, Adjusted: c.Adjusted, Margin: c.Margin, Widened: c.Widened, Verdict: c.Verdict, Why: c.Why, Of: OfRounds}
	switch {
	case c.Runs:
		v.Of = OfRuns
	case c.Pairs > 0:
		v.Of = OfPairs
	}
	if stat.Finite(c.Shift) {
		v.Shift = Estimate{N: c.Pairs, Value: c.Shift}
		if c.Pairs == 0 {
			v.Shift.N = min(c.N1, c.N2)
		}
	}
	if stat.Finite(c.Lo) && stat.Finite(c.Hi) {
		v.Shift.Lo, v.Shift.Hi, v.Shift.Bounded = c.Lo, c.Hi, true
	}
	return v
}
