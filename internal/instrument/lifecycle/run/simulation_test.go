//go:build prove

package run_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	lifecyclerun "github.com/tare-bench/tare/internal/instrument/lifecycle/run"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/fake"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestIntervalsContainTheTrueMedian(t *testing.T) {
	t.Parallel()
	for _, rounds := range []int{10, 20} {
		held, all := 0, 0
		for seed := range uint64(200) {
			l := judged(t, inMemory(t, planned(func(p *lifecycle.Options) { p.Rounds = rounds }), &fake.Target{Name: "a", Script: noisy(seeded(seed), 1, 0.1)}))
			for op, median := range truth {
				all++
				if s := cellOf(t, l, 1, op, "a")[0].Estimate; s.Lo <= median && median <= s.Hi {
					held++
				}
			}
		}
		t.Logf("%d rounds: %d of %d intervals contained the true median", rounds, held, all)
		if float64(held) < 0.94*float64(all) { // 95 % and a standard error and a half
			t.Errorf("%d rounds: only %d of %d", rounds, held, all)
		}
	}
}

func TestFivePercentDifferenceIsDetected(t *testing.T) {
	t.Parallel()
	const runs = 100
	foundIn, worst := map[subject.Op]int{}, math.Inf(1)
	for seed := range uint64(runs) {
		_, l := weigh(t, planned(func(p *lifecycle.Options) { p.Seed, p.Rounds = seed+1, 20 }),
			pair(noisy(seeded(seed), 1, 0.02), noisy(seeded(seed+1000), 1.05, 0.02))...)
		for _, op := range subject.ContainerOps {
			if v := cellOf(t, l, 1, op, "b")[0].Versus; v.Different() && v.Shift.Lo > 0 {
				foundIn[op]++
			}
		}
	}
	for op := range truth {
		worst = min(worst, float64(foundIn[op]))
	}
	t.Logf("5 %% under noise of 2 %%, 20 rounds: found in %v of %d runs", foundIn, runs)
	if worst < 95 {
		t.Errorf("found in only %v of %d runs", foundIn, runs)
	}
}

// weather is a slowdown common to all targets. The factor follows the virtual clock in
// waves of random length plus a trend.
type weather struct {
	clock *int64
	waves [3]struct{ height, length, phase float64 }
	trend float64 // after 20 rounds
}

func newWeather(r *rand.Rand, clock *int64) *weather {
	w := &weather{clock: clock, trend: 0.3 * r.Float64()}
	for i := range w.waves {
		w.waves[i].height = 0.05 * r.Float64()
		w.waves[i].length = 1e9 * math.Exp(3*r.Float64()) // 1 s to 20 s; a round takes 0.75 s
		w.waves[i].phase = 2 * math.Pi * r.Float64()
	}
	return w
}

func (w *weather) factor() float64 {
	now := float64(*w.clock)
	f := w.trend * now / (20 * 0.75e9)
	for _, v := range w.waves {
		f += v.height * math.Sin(2*math.Pi*now/v.length+v.phase)
	}
	return math.Exp(f)
}

func (w *weather) over(s fake.Script) fake.Script {
	return func(op subject.Op, lane, n int) (int64, *record.Failure) {
		latency, failure := s(op, lane, n)
		return int64(float64(latency) * w.factor()), failure
	}
}

func TestEqualTargetsAreRarelyCalledDifferent(t *testing.T) {
	const runs = 200
	// The tests use ranks, so on a steady machine any noise distribution will do.
	for _, machine := range []struct {
		name     string
		noise    float64
		drifting bool
	}{
		{"on a steady machine", 0.05, false},
		{"on a drifting machine", 0.1, true},
		{"on a drifting machine with little noise", 0.02, true},
	} {
		for _, rounds := range []int{10, 20} {
			t.Run(fmt.Sprintf("%s, %d rounds", machine.name, rounds), func(t *testing.T) {
				t.Parallel()
				called, compared, runsWithOne := 0, 0, 0
				for seed := range uint64(runs) {
					r, clock := seeded(seed<<8|uint64(rounds)), int64(1)
					script := noisy(r, 1, machine.noise)
					if machine.drifting {
						script = newWeather(r, &clock).over(script)
					}
					rec := inMemory(t, planned(func(p *lifecycle.Options) { p.Seed, p.Rounds = seed+1, rounds }),
						&fake.Target{Name: "a", Script: script, Clock: &clock}, &fake.Target{Name: "b", Script: script, Clock: &clock})
					l, before := judged(t, rec), called
					for _, op := range subject.ContainerOps {
						compared++
						if cellOf(t, l, 1, op, "b")[0].Versus.Different() {
							called++
						}
					}
					if called > before {
						runsWithOne++
					}
				}
				t.Logf("%d of %d comparisons differ (%.2f %%), in %d of %d runs (%.1f %%)",
					called, compared, 100*float64(called)/float64(compared), runsWithOne, runs, 100*float64(runsWithOne)/runs)
				if float64(called) > 0.05*float64(compared) {
					t.Errorf("%d of %d equal pairs were reported as different", called, compared)
				}
			})
		}
	}
}

// inMemory runs a plan without a file.
func inMemory(t *testing.T, p lifecycle.Options, targets ...subject.Target) *record.Record {
	t.Helper()
	rec, _, err := lifecyclerun.Run(t.Context(), options(p, targets))
	must.OK(t, err)
	return rec
}
