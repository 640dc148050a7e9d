package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/fake"
	"github.com/tare-bench/tare/record"
)

func TestInterruptKeepsResultsAndIsNotAFailure(t *testing.T) {
	const lanes = 100
	for _, tt := range []struct {
		name    string
		op      subject.Op
		atLane  int // lane of the fourth batch, warm-up included; -1 at its release
		counted int // completed lanes of that batch
	}{
		{"at the release of run", subject.Run, -1, 0},
		{"in the middle of run", subject.Run, 50, 50},
		{"in the middle of create", subject.Create, 99, 99},
		{"at the first lane of stop", subject.Stop, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			log, targets := logging("a", "b")
			a, releases, discarded := targets[0].(*fake.Target), 0, 0
			a.OnRelease = func(op subject.Op) {
				if op == tt.op {
					releases++
				}
				if op == tt.op && releases == 4 && tt.atLane < 0 {
					interrupt()
				}
			}
			a.Script = func(op subject.Op, lane, n int) (int64, *record.Failure) {
				if op == tt.op && releases == 4 && lane == tt.atLane {
					interrupt()
				}
				return constant(1)(op, lane, n)
			}
			targets[0] = &watched{Target: a, discarding: func(ctx context.Context) error {
				discarded++
				return ctx.Err() // cleanup has its own timeout
			}}
			rec, l := weighWith(ctx, t, options(planned(func(p *lifecycle.Options) { p.Lanes = []int{lanes} }), targets))

			if rec.End == nil || rec.End.Status != "interrupted" || rec.End.Failures != 0 || rec.End.Batches != len(rec.Batches) {
				t.Errorf("end %+v", rec.End)
			}
			last := rec.Batches[len(rec.Batches)-1]
			if last.Target != "a" || last.Op != string(tt.op) || last.Round != 2 || len(last.Samples) != lanes {
				t.Errorf("the last batch is %s %s in round %d with %d samples", last.Target, last.Op, last.Round, len(last.Samples))
			}
			c := cellOf(t, l, lanes, tt.op, "a")
			if c[0].Failed != 0 || c[0].Total != 2*lanes+tt.counted || c[0].Estimate.N != 2 || laneCount(c) != 2*lanes+tt.counted {
				t.Errorf("got %+v %+v", c, c[0])
			}
			if l.Failed != 0 || len(found(t, l, "failed-operations")) != 0 || len(found(t, l, "target-given-up")) != 0 || len(found(t, l, "interrupted")) != 1 {
				t.Errorf("%d failed; findings %v", l.Failed, codes(l.Found))
			}
			if e := *log; !slices.Equal(e[len(e)-2:], events{"close a", "close b"}) {
				t.Errorf("last events %q", e[len(e)-3:])
			}
			check.Equal(t, "discarded", discarded, 3*2+map[bool]int{true: 2, false: 1}[tt.op == subject.Run])
		})
	}
}

func TestInterruptDuringPrepareIsNotAnError(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	log, targets := logging("a")
	o := options(planned(nil), []subject.Target{&watched{Target: targets[0],
		arming: func(subject.Op, []int) error { interrupt(); return errors.New("the lanes were killed") }}})
	rec, l := weighWith(ctx, t, o)
	if rec.End.Status != "interrupted" || l.Failed != 0 || !slices.Equal(codes(l.Found), []string{"interrupted"}) || log.count("open") != log.count("close") {
		t.Errorf("end %+v, %d failed, findings %+v, events %q", rec.End, l.Failed, l.Found, *log)
	}
}

func TestRoundsAreAddedUntilPrecise(t *testing.T) {
	t.Parallel()
	const precision = 0.05
	for name, tt := range map[string]struct {
		sigma       float64
		least, most int
	}{
		"little noise needs the minimum":                       {0.01, 8, 8},
		"more noise needs more rounds":                         {0.1, 20, 120},
		"fewer rounds than an interval needs are not accepted": {0.001, 8, 8},
	} {
		t.Run(name, func(t *testing.T) {
			rec, l := weigh(t, planned(func(p *lifecycle.Options) { p.Rounds, p.Precision = 3, precision }),
				pair(noisy(seeded(1), 1, tt.sigma), noisy(seeded(2), 1, tt.sigma))...)
			if rec.End.Why != "precision reached" || len(found(t, l, "precision-not-reached")) > 0 {
				t.Errorf("end %+v", rec.End)
			}
			rounds := l.Rounds(1)
			widest := func(rounds int) float64 {
				v := lifecycle.NewIntervals(rec.Targets, &l.Plan)
				for i := range rec.Batches {
					if b := &rec.Batches[i]; b.Phase == record.PhaseMeasure && b.Round < rounds {
						v.Add(b)
					}
				}
				worst, _ := v.Widest()
				return worst
			}
			if worst := widest(rounds); worst > precision {
				t.Errorf("stopped at ±%.1f %%", 100*worst)
			}
			if rounds < tt.least || rounds > tt.most {
				t.Errorf("%d rounds", rounds)
			}
			if worst := widest(rounds - 1); worst <= precision {
				t.Errorf("the last of %d rounds was unnecessary: ±%.1f %% before", rounds, 100*worst)
			}
		})
	}
}

// slow advances the virtual clock by the latencies.
func slow(s fake.Script) fake.Script {
	return func(op subject.Op, lane, n int) (int64, *record.Failure) {
		latency, failure := s(op, lane, n)
		time.Sleep(time.Duration(latency))
		return latency, failure
	}
}

func TestSpentBudgetIsReportedPerLaneCount(t *testing.T) {
	for _, tt := range []struct {
		budget time.Duration
		rounds map[int]int // measured rounds by lanes
		found  []string
	}{
		// A round takes 750 ms with one lane and 1.5 s with two. Each number of lanes has
		// one warm-up round.
		{3 * time.Second, map[int]int{1: 4}, []string{"after 4 of 10", "after 0 of 10"}},
		{14 * time.Second, map[int]int{1: 10, 2: 3}, []string{"after 3 of 10"}},
		{time.Minute, map[int]int{1: 10, 2: 10}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, l := weigh(t, planned(func(p *lifecycle.Options) { p.Lanes, p.Budget = []int{1, 2}, tt.budget }),
				&fake.Target{Name: "a", Script: slow(constant(2))})
			got := map[int]int{}
			for _, lanes := range []int{1, 2} {
				if n := l.Rounds(lanes); n > 0 {
					got[lanes] = n
				}
			}
			f := found(t, l, "budget-spent")
			if !reflect.DeepEqual(got, tt.rounds) || len(f) != len(tt.found) {
				t.Fatalf("rounds by lanes %v, want %v; findings %+v", got, tt.rounds, f)
			}
			for i, want := range tt.found {
				if !strings.Contains(f[i].Message, want) || f[i].Lanes == 0 {
					t.Errorf("%+v, want %q", f[i], want)
				}
			}
		})
	}
}

func TestPrecisionIsPerLaneCount(t *testing.T) {
	for name, tt := range map[string]struct {
		noisy  int // the noisy lane
		rounds int // minimum, with one lane
		why    string
	}{
		"never precise":         {0, 20, "budget spent"},
		"only one lane precise": {1, 10, "1 at once: precision reached, 2 at once: budget spent"},
		"both precise":          {2, 10, "precision reached"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				noise := noisy(seeded(1), 3, 0.5)
				script := func(op subject.Op, lane, n int) (int64, *record.Failure) {
					of := constant(1)
					if lane == tt.noisy {
						of = noise
					}
					if lane == 0 { // only one lane advances the clock
						of = slow(of)
					}
					return of(op, lane, n)
				}
				rec, l := weigh(t, planned(func(p *lifecycle.Options) {
					p.Lanes, p.Budget, p.Precision = []int{1, 2}, time.Minute, 0.001
				}), &fake.Target{Name: "a", Script: script})
				if rec.End.Why != tt.why || l.Rounds(1) < tt.rounds || l.Rounds(2) < 10 {
					t.Errorf("end %+v, %d and %d rounds, %+v", rec.End, l.Rounds(1), l.Rounds(2), codes(l.Found))
				}
			})
		})
	}
}

func TestNodeReadingsHaveTheirRound(t *testing.T) {
	o := options(planned(func(p *lifecycle.Options) { p.Lanes, p.Rounds, p.Warmup = []int{1, 3}, 8, 1 }), pair(constant(1), constant(1)))
	o.Node = func() record.Node { return record.Node{Known: true, HavePSI: true, Steal: 0.03, PSIIO: 0.5} }
	rec, l := weighWith(t.Context(), t, o)
	if len(rec.Nodes) != 18 {
		t.Fatalf("%d readings", len(rec.Nodes))
	}
	for i, n := range rec.Nodes {
		want := record.Node{Type: record.TypeNode, Known: true, HavePSI: true, Steal: 0.03, PSIIO: 0.5, Phase: record.PhaseMeasure, Lanes: []int{1, 3}[i/9], Round: i%9 - 1}
		if i%9 == 0 {
			want.Phase, want.Round = record.PhaseWarmup, 0
		}
		check.That(t, n == want, "reading %d is %+v, want %+v", i, n, want)
	}
	check.Equal(t, "findings", codes(l.Found), []string{"steal", "pressure"})
}

func TestRecordHasTheCommandToRepeat(t *testing.T) {
	p := planned(func(p *lifecycle.Options) { p.Seed, p.Lanes, p.Timeout = 7, []int{1, 2}, 3*time.Second })
	rec, l := weigh(t, p, pair(constant(1), constant(1))...)
	var stored lifecycle.Options
	if err := json.Unmarshal(rec.Header.Plan, &stored); err != nil || !reflect.DeepEqual(stored, p) || !reflect.DeepEqual(l.Plan, p) {
		t.Errorf("%v: %+v, want %+v", err, stored, p)
	}
	if _, chosen := weigh(t, planned(func(p *lifecycle.Options) { p.Seed = 0 }), pair(constant(1), constant(1))...); chosen.Plan.Seed == 0 || chosen.Plan.Seed >= 1<<53 {
		t.Errorf("recorded seed %d without a requested one", chosen.Plan.Seed)
	}
	if rec.Header.RunID != "test" || rec.Header.Experiment != "lifecycle" || len(rec.Targets) != 2 {
		t.Errorf("header %+v", rec.Header)
	}
}
