package stat

import (
	"math"
	"testing"
)

func TestMinRounds(t *testing.T) {
	for _, tt := range []struct {
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
	} {
		if got := MinRounds(tt.confidence); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
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

// The critical values of Wilcoxon's table for two sides at 0.05 (Conover, Practical
// Nonparametric Statistics, 3rd ed. 1999, table A12), each one less than the rank.
func TestWalshRankIsThatOfTheTables(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 0, 5: 0, 6: 1, 7: 3, 8: 4, 10: 9, 12: 14, 15: 26, 20: 53, 25: 90, 30: 138, 50: 435} {
		if got := walshRank(n, 0.05); got != want {
			t.Errorf("n=%d: got %d, want %d", n, got, want)
		}
	}
	if exact, close := walshRank(maxExact, 0.05), walshRank(maxExact+1, 0.05); close <= exact || close > exact+30 {
		t.Errorf("the approximation does not follow the exact ranks: %d, %d", exact, close)
	}
}
