package density

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
)

// worthNaming is the minimum relative change of the slope at a bend.
const worthNaming = 0.2

// segments adds the slope of the node's memory over the number of sandboxes, for each
// segment between bends. At a bend the slopes on both sides differ by at least a fifth
// and their intervals do not overlap. The intervals are adjusted for the number of
// candidate bends. The search picks the best-fitting bend first, then looks for bends on
// either side of it.
func segments(t *Target, byRound map[int][]stat.Point) {
	var rounds [][]stat.Point
	for _, r := range slices.Sorted(maps.Keys(byRound)) {
		rounds = append(rounds, byRound[r])
	}
	bends := bendsOf(rounds, 3)
	slices.Sort(bends)
	from := math.Inf(-1)
	for _, to := range append(bends, math.Inf(1)) {
		part := within(rounds, from, to)
		f := stat.LineOfRounds(part, figure.Confidence)
		from = to
		e := figure.Slope(f)
		if !e.Known() {
			continue
		}
		points, byCount := slices.Concat(part...), func(a, b stat.Point) int { return cmp.Compare(a.X, b.X) }
		first, last := slices.MinFunc(points, byCount), slices.MaxFunc(points, byCount)
		slope := t.put("memory-of-one-more", e, nil, "from", strconv.Itoa(int(first.X)), "to", strconv.Itoa(int(last.X)))
		slope.Rounds, slope.Reasons = nil, f.Warnings
	}
}

// bendsOf returns the bends. It splits the range recursively, at most deep levels.
func bendsOf(rounds [][]stat.Point, deep int) (bends []float64) {
	tried := shared(rounds)
	if len(tried) < 3 || deep == 0 {
		return nil
	}
	tried = tried[1 : len(tried)-1]
	confidence := 1 - (1-figure.Confidence)/float64(len(tried))
	at, least := math.NaN(), math.Inf(1)
	var before, after stat.Fit
	for _, x := range tried {
		low, high := within(rounds, math.Inf(-1), x), within(rounds, x, math.Inf(1))
		b, a := stat.LineOfRounds(low, confidence), stat.LineOfRounds(high, confidence)
		if off := squares(low, b) + squares(high, a); off < least {
			at, least, before, after = x, off, b, a
		}
	}
	apart := before.Known && after.Known && (after.SlopeLo > before.SlopeHi || before.SlopeLo > after.SlopeHi)
	if !apart || math.Abs(after.Slope-before.Slope) < worthNaming*math.Abs(before.Slope) {
		return nil
	}
	bends = append(bendsOf(within(rounds, math.Inf(-1), at), deep-1), at)
	return append(bends, bendsOf(within(rounds, at, math.Inf(1)), deep-1)...)
}

// squares returns the sum of squared residuals of points from a line.
func squares(rounds [][]stat.Point, f stat.Fit) (sum float64) {
	for _, p := range slices.Concat(rounds...) {
		off := p.Y - f.Intercept - f.Slope*p.X
		sum += off * off
	}
	return sum
}

// within returns the points of each round in a range.
func within(rounds [][]stat.Point, from, to float64) (out [][]stat.Point) {
	for _, points := range rounds {
		out = append(out, slices.DeleteFunc(slices.Clone(points), func(p stat.Point) bool { return p.X < from || p.X > to }))
	}
	return out
}

// shared returns the counts that most rounds have.
func shared(rounds [][]stat.Point) (places []float64) {
	times := map[float64]int{}
	for _, p := range slices.Concat(rounds...) {
		times[p.X]++
	}
	for x, n := range times {
		if 2*n > len(rounds) {
			places = append(places, x)
		}
	}
	slices.Sort(places)
	return places
}
