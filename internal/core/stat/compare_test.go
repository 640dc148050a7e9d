package stat

import (
	"math"
	"strings"
	"testing"
)

const simulations = 2000

// The same target measured twice must not be called different more often than
// Alpha, on any machine.
func TestEqualTargetsAreRarelyCalledDifferent(t *testing.T) {
	machines := []struct {
		name string
		machine
		sigma float64
		lossy bool
	}{
		{"on a steady machine", steady, 0.1, false},
		{"on a machine that slows by 30%", slowing, 0.1, false},
		{"on a machine that slows by 30%, with little noise", slowing, 0.02, false},
		{"on a machine that wanders", wandering, 0.1, false},
		{"on a machine that wanders, with one round in ten failing", wandering, 0.1, true},
	}
	for _, m := range machines {
		for _, n := range []int{10, 20} {
			r := seeded(uint64(n))
			different, u, sign := 0, 0, 0
			for range simulations {
				factors := m.machine(r, n)
				a, b := run(r, factors, 100, m.sigma), run(r, factors, 100, m.sigma)
				if m.lossy {
					a, b = failing(r, a), failing(r, b)
				}
				c := Compare(a, b)
				different += count(c.Different)
				u += count(c.P < Alpha)
				sign += count(c.PairedLo > 0 || c.PairedHi < 0)
			}
			t.Logf("%s, n=%d: called different %.2f%% (U test alone %.2f%%, paired interval alone %.2f%%)", m.name, n,
				share(different), share(u), share(sign))
			if share(different) > 100*Alpha {
				t.Errorf("%s, n=%d: %.2f%% false positives", m.name, n, share(different))
			}
		}
	}
}

func TestAShiftOfFivePercentIsFound(t *testing.T) {
	r := seeded(5)
	found := 0
	for range simulations {
		factors := steady(r, 20)
		c := Compare(run(r, factors, 100, 0.02), run(r, factors, 105, 0.02))
		found += count(c.Different && c.Delta > 0)
	}
	t.Logf("a shift of 5%% under noise of 2%% is found in %.2f%% of runs of 20 rounds", share(found))
	if share(found) < 95 {
		t.Errorf("found in only %.2f%%", share(found))
	}
}

// The price of demanding both tests, for the reader of the log: no claim.
func TestPowerUnderDriftIsLower(t *testing.T) {
	for _, shift := range []float64{0.05, 0.1, 0.2} {
		r := seeded(7)
		found, sign := 0, 0
		for range simulations {
			factors := slowing(r, 20)
			c := Compare(run(r, factors, 100, 0.02), run(r, factors, 100*(1+shift), 0.02))
			found += count(c.Different)
			sign += count(c.PairedLo > 0)
		}
		t.Logf("a shift of %.0f%% on a machine that slows by 30%%, n=20: found in %.1f%% (paired interval alone %.1f%%)",
			100*shift, share(found), share(sign))
		if found > sign {
			t.Error("found without the paired interval")
		}
	}
}

func TestPairedIntervalHoldsTheShiftDespiteDrift(t *testing.T) {
	for _, n := range []int{10, 20} {
		r := seeded(6)
		held := 0
		for range simulations {
			factors := slowing(r, n)
			c := Compare(run(r, factors, 100, 0.1), run(r, factors, 110, 0.1))
			held += count(c.PairedLo <= 0.1 && 0.1 <= c.PairedHi)
		}
		t.Logf("n=%d: held in %.2f%%", n, share(held))
		if share(held) < 94 {
			t.Errorf("n=%d: held in only %.2f%%", n, share(held))
		}
	}
}

func TestCompare(t *testing.T) {
	nan := math.NaN()
	up := func(n int, by float64) (old, new Rounds) {
		old, new = Rounds{}, Rounds{}
		for i := range n {
			old[i] = 100 + float64(i)*0.1
			new[i] = old[i] * (1 + by)
		}
		return old, new
	}
	without := func(r Rounds, rounds ...int) Rounds {
		for _, i := range rounds {
			delete(r, i)
		}
		return r
	}
	shift := func(by float64, n int) func() (Rounds, Rounds) {
		return func() (Rounds, Rounds) { return up(n, by) }
	}
	tests := []struct {
		name      string
		sides     func() (old, new Rounds)
		different bool
		pairs     int
		why       string
	}{
		{"a clear shift of ten rounds is a difference", shift(0.1, 10), true, 10, "interval +10.00% to +10.00%"},
		{"a gain is as different as a loss", shift(-0.1, 10), true, 10, "interval -10.00% to -10.00%"},
		{"six rounds can be enough", shift(0.1, 6), true, 6, "p=0.002"},
		{"five rounds are too few, however clear", shift(0.5, 5), false, 5, "too few rounds: 5 in both, need 6"},
		{"the same values do not differ", shift(0, 10), false, 10, "may be none"},
		{"a steady shift below the scatter between rounds is not believed", shift(0.0001, 10), false, 10, "is not below 0.05"},
		{"rounds that failed on either side are no pairs", func() (Rounds, Rounds) {
			old, new := up(10, 0.1)
			return without(old, 0, 1), without(new, 2, 3)
		}, true, 6, ""},
		{"sides without a common round are not paired", func() (Rounds, Rounds) {
			old, new := up(20, 0.5)
			return without(old, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9), without(new, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
		}, false, 0, "too few rounds: 0"},
		{"a side that failed in every round is not different", func() (Rounds, Rounds) {
			old, _ := up(10, 0)
			return old, nil
		}, false, 0, "too few rounds"},
		{"two empty sides are not different", func() (Rounds, Rounds) { return nil, nil }, false, 0, "too few rounds"},
		{"a value that is no number is a round that failed", func() (Rounds, Rounds) {
			old, new := up(7, 0.1)
			old[3], new[3] = nan, math.Inf(1)
			return old, new
		}, true, 6, ""},
		{"zero against something is a difference, though not in percent", func() (Rounds, Rounds) {
			old, new := up(10, 0)
			for i := range old {
				old[i] = 0
			}
			return old, new
		}, true, 10, "interval ? to ?"},
		{"medians and rounds that disagree decide nothing", func() (Rounds, Rounds) {
			// Within a round new is slower; but old alone saw the slow rounds.
			old, new := Rounds{}, Rounds{}
			for i := range 7 {
				old[i], new[i] = 100+float64(i), 101.5+float64(i)
			}
			for i := 10; i < 60; i++ {
				old[i] = 1000 + float64(i)
			}
			return old, new
		}, false, 7, "point different ways"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			old, new := tt.sides()
			c := Compare(old, new)
			if c.Different != tt.different || c.Pairs != tt.pairs || !strings.Contains(c.Why, tt.why) || c.Why == "" {
				t.Errorf("got %+v", c)
			}
			if math.IsNaN(c.P) || c.P < 0 || c.P > 1 {
				t.Errorf("p is %v", c.P)
			}
		})
	}
}

func TestExchangingTheSidesKeepsTheVerdict(t *testing.T) {
	for seed := range uint64(300) {
		r := seeded(seed)
		factors := wandering(r, 6+int(seed%20))
		a, b := run(r, factors, 100, 0.03), run(r, factors, 104, 0.03)
		ab, ba := Compare(a, b), Compare(b, a)
		if ab.Different != ba.Different || !near(1+ab.PairedLo, 1/(1+ba.PairedHi)) {
			t.Fatalf("seed %d:\n%+v\n%+v", seed, ab, ba)
		}
	}
}

// benchmath doubles the smaller tail; with these ties it answers 1.71.
func TestPIsAProbability(t *testing.T) {
	if p, _ := mannWhitney([]float64{1}, []float64{0, 1, 1, 1, 1, 1}); p > 1 {
		t.Errorf("p is %v", p)
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func share(of int) float64 { return 100 * float64(of) / simulations }
