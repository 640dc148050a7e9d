//go:build prove

package density

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/testing/check"
)

const mib = 1 << 20

// bentNoises are models of node memory noise around a line of 2 MiB per sandbox. Each
// returns the deviation in MiB at each step of a round.
var bentNoises = []struct {
	name string
	off  func(r *rand.Rand, there []float64) []float64
}{
	{"independent, 1 MiB", func(r *rand.Rand, there []float64) []float64 {
		return each(there, func(float64) float64 { return r.NormFloat64() })
	}},
	{"independent, 10 MiB", func(r *rand.Rand, there []float64) []float64 {
		return each(there, func(float64) float64 { return 10 * r.NormFloat64() })
	}},
	{"random walk, 5 MiB per step", func(r *rand.Rand, there []float64) []float64 {
		at := 0.0
		return each(there, func(float64) float64 { at += 5 * r.NormFloat64(); return at })
	}},
	{"rounds 3 % apart", func(r *rand.Rand, there []float64) []float64 {
		slope := 2 * 0.03 * r.NormFloat64()
		return each(there, func(n float64) float64 { return slope*n + r.NormFloat64() })
	}},
	{"rounds 10 % apart", func(r *rand.Rand, there []float64) []float64 {
		slope := 2 * 0.1 * r.NormFloat64()
		return each(there, func(n float64) float64 { return slope*n + r.NormFloat64() })
	}},
	{"sandboxes 50 % apart", func(r *rand.Rand, there []float64) []float64 {
		at, was := 0.0, 0.0
		return each(there, func(n float64) float64 {
			for ; was < n; was++ {
				at += r.NormFloat64()
			}
			return at
		})
	}},
	{"5 %, independent at every step", func(r *rand.Rand, there []float64) []float64 {
		return each(there, func(n float64) float64 { return 2 * 0.05 * n * r.NormFloat64() })
	}},
	{"1 reading in 20 off by 60 MiB", func(r *rand.Rand, there []float64) []float64 {
		return each(there, func(float64) float64 {
			if r.IntN(20) == 0 {
				return 60
			}
			return r.NormFloat64()
		})
	}},
}

func each(there []float64, f func(float64) float64) (all []float64) {
	for _, n := range there {
		all = append(all, f(n))
	}
	return all
}

// bentRounds simulates rounds in which a sandbox costs a multiple of the base from a
// given count on.
func bentRounds(r *rand.Rand, rounds, at int, times float64, off func(*rand.Rand, []float64) []float64) (all [][]stat.Point) {
	for range rounds {
		there := []float64{4, 8, 16, 32, 64, 128, 256, 512, 600 + float64(r.IntN(300))} // memory runs out at the last count
		var points []stat.Point
		strays := off(r, there)
		for i, n := range there {
			cost := 2*n + strays[i]
			if more := n - float64(at); more > 0 {
				cost += 2 * (times - 1) * more
			}
			points = append(points, stat.Point{X: n, Y: cost * mib})
		}
		all = append(all, points)
	}
	return all
}

// A straight cost is reported as bent in at most 5 % of runs, for any noise. With at
// least 4 rounds, a doubled cost is found in at least 4 of 5 runs. The table is in
// docs/density.md.
func TestBendDetectionRates(t *testing.T) {
	const runs = 300
	var table strings.Builder
	for _, n := range bentNoises {
		for _, rounds := range []int{3, 4, 10} {
			r := rand.New(rand.NewPCG(uint64(rounds), 1))
			none := 0
			for range runs {
				if len(bendsOf(bentRounds(r, rounds, 0, 1, n.off), 3)) > 0 {
					none++
				}
			}
			check.That(t, none <= runs*5/100, "%s, %d rounds: %d of %d constant costs are reported as bent", n.name, rounds, none, runs)
			fmt.Fprintf(&table, "    %-26s %6d %8.1f %%", n.name, rounds, percent(none, runs))
			for _, p := range []struct {
				at    int
				times float64
			}{{64, 1.5}, {64, 2}, {100, 2}, {64, 0.5}} {
				found := 0
				for range runs {
					for _, b := range bendsOf(bentRounds(r, rounds, p.at, p.times, n.off), 3) {
						if b >= 64 && b <= 128 { // the step below or above it
							found++
							break
						}
					}
				}
				check.That(t, p.times < 2 || rounds < 4 || found >= runs*4/5,
					"%s, %d rounds: found %d of %d costs that double at %d", n.name, rounds, found, runs, p.at)
				fmt.Fprintf(&table, " %11.1f %%", percent(found, runs))
			}
			table.WriteByte('\n')
		}
	}
	t.Logf("\n%s", table.String())
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(of) }
