//go:build prove

package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// kinds are how runs of a history scatter by so much, around 100: what machine and
// figure do to each of n of them.
var kinds = []struct {
	name string
	draw func(r *rand.Rand, figures, n int, noise float64) [][]float64
}{
	{"independent", func(r *rand.Rand, figures, n int, noise float64) [][]float64 {
		return eachFigure(figures, func() []float64 { return lognormal(r, n, 100, noise) })
	}},
	{"autocorrelation 0.3", func(r *rand.Rand, figures, n int, noise float64) [][]float64 {
		return eachFigure(figures, func() []float64 { return remembering(0.3, noise)(r, n) })
	}},
	{"autocorrelation 0.6", func(r *rand.Rand, figures, n int, noise float64) [][]float64 {
		return eachFigure(figures, func() []float64 { return remembering(0.6, noise)(r, n) })
	}},
	{"machine drifts (0.7)", func(r *rand.Rand, figures, n int, noise float64) [][]float64 {
		machine := remembering(0.7, noise/math.Sqrt2)(r, n) // half of the variance, of all figures alike
		return eachFigure(figures, func() []float64 {
			out := lognormal(r, n, 1, noise/math.Sqrt2)
			for i := range out {
				out[i] *= machine[i]
			}
			return out
		})
	}},
	{"one run in 20 is off", func(r *rand.Rand, figures, n int, noise float64) [][]float64 {
		off := lognormal(r, n, 1, 0)
		for i := range off {
			if r.IntN(20) == 0 {
				off[i] = 1.1 + r.Float64() // of all figures of the run
			}
		}
		return eachFigure(figures, func() []float64 {
			out := lognormal(r, n, 100, noise)
			for i := range out {
				out[i] *= off[i]
			}
			return out
		})
	}},
}

func eachFigure(figures int, draw func() []float64) [][]float64 {
	out := make([][]float64, figures)
	for i := range out {
		out[i] = draw()
	}
	return out
}

// Of histories of 30 to 100 runs of 10 figures at most 2 % show a change where there is
// none, whatever the machine does; where 3 of the figures change, 80 % of the changes are
// found that are not below what the noise is said to let be found.
func TestChangesOfHistoriesAreFoundAndNoOthers(t *testing.T) {
	t.Parallel()
	const histories, figures, changing = 200, 10, 3
	var table strings.Builder
	fmt.Fprintf(&table, "%-22s %6s %8s", "", "noise", "false")
	plans := [][]float64{{0.02}, {0.05}, {0.10}, {0.05, 0.05}, {0.05, -0.05}}
	for _, name := range []string{"2 %", "5 %", "10 %", "5 % twice", "5 % and back"} {
		fmt.Fprintf(&table, " %15s", name)
	}
	fmt.Fprintln(&table, "   found / of those above the floor / within 1 run")
	var alarmed, beside, feasible, found int // beside: where something changed, and more is shown
	for k, kind := range kinds {
		falsely := 0
		for noise := 1; noise <= 5; noise++ {
			r := seeded(uint64(7000 + 10*k + noise))
			wrong := 0
			for range histories {
				n := 30 + r.IntN(71)
				any := false
				for _, c := range Changes(kind.draw(r, figures, n, float64(noise)/100)) {
					any = any || len(c.Changes) > 0
				}
				wrong += count(any)
			}
			alarmed, falsely = alarmed+wrong, falsely+wrong
			fmt.Fprintf(&table, "%-22s %4d %% %6.1f %%", kind.name, noise, 100*float64(wrong)/histories)
			for _, plan := range plans {
				var planted, seen, above, aboveSeen, near int
				for range histories / 5 {
					n := 30 + r.IntN(71)
					all := kind.draw(r, figures, n, float64(noise)/100)
					var at []int
					for i := range plan {
						lo, hi := i*n/len(plan), (i+1)*n/len(plan)
						at = append(at, lo+(hi-lo)/4+r.IntN((hi-lo)/2))
					}
					for f := range changing {
						for i, from := range at {
							for j := from; j < n; j++ {
								all[f][j] *= 1 + plan[i]
							}
						}
					}
					courses := Changes(all)
					elsewhere := false
					for f, course := range courses {
						elsewhere = elsewhere || f >= changing && course.Changes != nil || len(course.Changes) > len(at)
					}
					beside += count(elsewhere)
					for f := range changing {
						for i, from := range at {
							before, after := 0, n
							if i > 0 {
								before = at[i-1]
							}
							if i+1 < len(at) {
								after = at[i+1]
							}
							floor := courses[f].Finds * math.Sqrt(float64(n)) / 2 * math.Sqrt(1/float64(from-before)+1/float64(after-from))
							hit, exact := false, false
							for _, c := range courses[f].Changes {
								away := math.Abs(float64(c.At - from))
								hit = hit || away <= 5 && c.Shift > 0 == (plan[i] > 0)
								exact = exact || away <= 1
							}
							planted, seen, near = planted+1, seen+count(hit), near+count(hit && exact)
							if floor <= math.Abs(plan[i]) {
								above, aboveSeen = above+1, aboveSeen+count(hit)
							}
						}
					}
				}
				feasible, found = feasible+above, found+aboveSeen
				of := func(a, b int) string {
					if b == 0 {
						return "–"
					}
					return fmt.Sprintf("%.0f", 100*float64(a)/float64(b))
				}
				fmt.Fprintf(&table, " %15s", of(seen, planted)+" / "+of(aboveSeen, above)+" / "+of(near, seen))
			}
			fmt.Fprintln(&table)
		}
		if float64(falsely) > 0.02*5*histories {
			t.Errorf("%s: %d of %d histories have a false alarm", kind.name, falsely, 5*histories)
		}
	}
	t.Logf("\n%s", &table)
	all := 5 * histories * len(kinds)
	t.Logf("%d of %d histories have a false alarm, and %d of %d beside what changed; %d of %d above the floor were found", alarmed, all, beside, all, found, feasible)
	if float64(beside) > 0.02*float64(all) {
		t.Errorf("%d of %d histories have a false alarm beside what changed", beside, all)
	}
	if float64(found) < 0.8*float64(feasible) {
		t.Errorf("%d of %d were found", found, feasible)
	}
}
