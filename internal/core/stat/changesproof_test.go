//go:build prove

package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// kinds lists models of the scatter of runs in a history around 100. Each model draws the
// effects of the machine and of the figure on each of n runs.
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
		machine := remembering(0.7, noise/math.Sqrt2)(r, n) // half of the variance, common to all figures
		return eachFigure(figures, func() []float64 {
			out := lognormal(r, n, 1, noise/math.Sqrt2)
			for i := range out {
				out[i] *= machine[i]
			}
			return out
		})
	}},
	{"one run in 20 is an outlier", func(r *rand.Rand, figures, n int, noise float64) [][]float64 {
		off := lognormal(r, n, 1, 0)
		for i := range off {
			if r.IntN(20) == 0 {
				off[i] = 1.1 + r.Float64() // common to all figures of the run
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

// Histories have 30 to 100 runs of 10 figures. Without a change, at most 2 % of them may
// show one, for any machine model. With a change in 3 of the figures, 80 % of the changes
// above the detection limit must be found.
func TestChangesOfHistoriesAreFound(t *testing.T) {
	t.Parallel()
	const histories, figures, changing = 200, 10, 3
	var table strings.Builder
	fmt.Fprintf(&table, "%-22s %6s %8s", "", "noise", "false")
	plans := [][]float64{{0.02}, {0.05}, {0.10}, {0.05, 0.05}, {0.05, -0.05}}
	for _, name := range []string{"2 %", "5 %", "10 %", "5 % twice", "5 % and back"} {
		fmt.Fprintf(&table, " %15s", name)
	}
	fmt.Fprintln(&table, "   found / of those above the floor / within 1 run")
	var alarmed, misplaced, feasible, found int // false changes in histories with a change
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
					misplaced += count(elsewhere)
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
			t.Errorf("%s: false alarms in %d of %d histories", kind.name, falsely, 5*histories)
		}
	}
	t.Logf("\n%s", &table)
	all := 5 * histories * len(kinds)
	t.Logf("false alarms in %d of %d histories, away from the change in %d of %d; found %d of %d changes above the floor", alarmed, all, misplaced, all, found, feasible)
	if float64(misplaced) > 0.02*float64(all) {
		t.Errorf("false alarms away from the change in %d of %d histories", misplaced, all)
	}
	if float64(found) < 0.8*float64(feasible) {
		t.Errorf("found %d of %d changes", found, feasible)
	}
}

// Two shares are checked: fleets of equal nodes in which an outlier is reported, and
// slower nodes that are found. The table is in docs/statistics.md.
func TestFleetsOfEqualNodesHaveFewOutliers(t *testing.T) {
	const fleets, figures, sigma = 400, 16, 0.05
	heavy := func(r *rand.Rand) float64 { // Student's t of 10 degrees of freedom
		squares := 0.0
		for range 10 {
			v := r.NormFloat64()
			squares += v * v
		}
		return r.NormFloat64() / math.Sqrt(squares/10)
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-22s%8s%12s%12s%12s%12s\n", "", "nodes", "beyond 3.5", "any", "30 % slower", "50 % slower")
	for _, kind := range []struct {
		name  string
		draw  func(*rand.Rand) float64
		bound float64
	}{{"normal, 5 %", (*rand.Rand).NormFloat64, 0.06}, {"heavier tails, 5 %", heavy, 1}} {
		for _, n := range []int{10, 20, 50, 100, 1000} {
			of := func(n int) Kinds { return kindsOf(n, min(max(1, n/16), 6)) }
			r := seeded(uint64(n))
			plain, any, found := 0, 0, [2]int{}
			for range fleets {
				flagged, beyond := false, false
				for f := range figures {
					values := make([]float64, n)
					for i := range values {
						values[i] = 100 * math.Exp(sigma*kind.draw(r))
					}
					flagged = flagged || len(Outliers(values, of(n), n*figures)) > 0
					beyond = beyond || len(beyondScore(values)) > 0
					for k, times := range []float64{1.3, 1.5} {
						if f > 0 {
							continue
						}
						was := values[0]
						values[0] = 100 * times
						if o := Outliers(values, of(n), n*figures); len(o) > 0 && o[0].At == 0 {
							found[k]++
						}
						values[0] = was
					}
				}
				if flagged {
					any++
				}
				if beyond {
					plain++
				}
			}
			share := func(k int) float64 { return 100 * float64(k) / fleets }
			fmt.Fprintf(&table, "%-22s%8d%10.1f %%%10.1f %%%10.1f %%%10.1f %%\n", kind.name, n, share(plain), share(any), share(found[0]), share(found[1]))
			if share(any) > 100*kind.bound {
				t.Errorf("%s, %d nodes: %.1f %% have an outlier", kind.name, n, share(any))
			}
		}
	}
	t.Log("\n" + table.String())
}

func kindsOf(n, kinds int) Kinds {
	k := Kinds{Of: make([]int, n), Members: make([][]int, kinds)}
	for i := range n {
		k.Of[i] = i % kinds
		k.Members[i%kinds] = append(k.Members[i%kinds], i)
	}
	return k
}

// beyondScore returns the values whose robust score exceeds 3.5 and whose ratio to the
// median is large enough.
func beyondScore(values []float64) (out []float64) {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	middle, off := deviations(logs)
	scatter := 1.4826 * middleOf(off)
	for i, v := range logs {
		if off[i] > boundOfScore*scatter && apart(math.Exp(v-middle)) {
			out = append(out, v)
		}
	}
	return out
}
