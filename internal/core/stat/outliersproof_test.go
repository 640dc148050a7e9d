//go:build prove

package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// How often fleets in which all nodes are alike have an outlier at all, and how often one
// node that is slower is found: docs/statistics.md has the table.
func TestFleetsOfLikeNodesHaveFewOutliers(t *testing.T) {
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
				told, beyond := false, false
				for f := range figures {
					values := make([]float64, n)
					for i := range values {
						values[i] = 100 * math.Exp(sigma*kind.draw(r))
					}
					told = told || len(Outliers(values, of(n), n*figures)) > 0
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
				if told {
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

// beyondScore are those that the bound of 3.5 alone would tell.
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
