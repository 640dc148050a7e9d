package stat

import (
	"math"
	"testing"
)

func TestMinRounds(t *testing.T) {
	tests := []struct {
		name       string
		confidence float64
		want       int
	}{
		{"95% needs six", 0.95, 6},
		{"99% needs eight", 0.99, 8},
		{"90% needs five", 0.90, 5},
		{"what six give exactly needs no seventh", 0.96875, 6},
		{"an interval has two ends", 0, 2},
		{"certainty has no number of rounds", 1, math.MaxInt},
		{"neither has what is no number", math.NaN(), math.MaxInt},
		{"the largest number below one has one", math.Nextafter(1, 0), 54},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := MinRounds(tt.confidence); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestMinRoundsIsWhereSummarizeBeginsToKnow(t *testing.T) {
	for _, confidence := range []float64{0.5, 0.8, 0.9, 0.95, 0.99, 0.999} {
		n := MinRounds(confidence)
		for _, size := range []int{n - 1, n} {
			if got := Summarize(lognormal(seeded(1), size, 1, 0.1), confidence).Known; got != (size >= n) {
				t.Errorf("confidence %v, n=%d: known is %v", confidence, size, got)
			}
		}
	}
}

// The ranks follow from the binomial tails: at n = 10, 2·(1+10)/2¹⁰ = 0.021 for
// the second rank and 0.109 for the third.
func TestSignRank(t *testing.T) {
	tests := []struct {
		n, want int
		known   bool
	}{{0, 0, false}, {5, 0, false}, {6, 1, true}, {8, 1, true}, {9, 2, true}, {10, 2, true}, {12, 3, true}, {20, 6, true}, {25, 8, true}, {100, 40, true}}
	for _, tt := range tests {
		if k, ok := signRank(tt.n, 0.95); k != tt.want || ok != tt.known {
			t.Errorf("n=%d: got %d %v, want %d %v", tt.n, k, ok, tt.want, tt.known)
		}
	}
}

func TestSignRankDoesNotUnderflow(t *testing.T) {
	if k, ok := signRank(10000, 0.95); !ok || k < 4895 || k > 4910 { // 5000 − 1.96·50 = 4902
		t.Errorf("got %d %v", k, ok)
	}
}
