// Package run weighs what create, start, stop, rm and run cost on each
// target, and where there are pods runp, stopp and rmp, one at a time or many
// at once.
//
// It says what one visit of a target is and nothing else: rounds are those of
// core/run, everything that happens goes into the record at once, and what can be
// said of it is said by package lifecycle.
package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/ready"
	"github.com/tare-bench/tare/record"
)

// Options are what a run needs besides its plan.
type Options struct {
	run.Options
	Plan    lifecycle.Options
	Targets []subject.Target
	// Workload is what containers hold.
	Workload subject.Workload
	// Meter finds what outlives sandboxes; nil: that is not looked for.
	Meter Meter
}

type turn = run.Turn[subject.Session]

// Run performs the plan and returns the record of it and what is made of that, see
// [run.Finish].
func Run(ctx context.Context, o Options) (*record.Record, *lifecycle.Judgement, error) {
	o.Plan.Seed = run.Seed(o.Plan.Seed)
	r, err := run.Begin[subject.Session](o.Options, "lifecycle", o.Plan, o.Targets)
	s := &schedule{Run: r, plan: o.Plan, workload: o.Workload, companions: newCompanions(o.Meter)}
	why := ""
	if err == nil {
		why, err = s.sweep(ctx, o.Targets)
	}
	for _, f := range s.companions.findings(ctx) { // before sessions end what their commands left
		err = run.Together(err, s.Finding(f))
	}
	return run.Finish(ctx, r, why, err, lifecycle.Judge)
}

type schedule struct {
	*run.Run[subject.Session]
	plan      lifecycle.Options
	workload  subject.Workload
	lanes     int                  // at present
	intervals *lifecycle.Intervals // at these

	companions companions
}

// sweep goes through the numbers of lanes, and says what ended them, of each where they
// differ.
func (s *schedule) sweep(ctx context.Context, targets []subject.Target) (why string, err error) {
	p := &s.plan
	err = s.OpenAll(ctx, ready.Opener(p.Ready, targets, subject.Env{Lanes: slices.Max(p.Lanes), Timeout: p.Timeout, Limits: p.Limits, Workload: s.workload}))
	later := 0.0
	for _, n := range p.Lanes {
		later += s.all(n)
	}
	var whys []string
	for _, n := range p.Lanes {
		if err != nil || ctx.Err() != nil {
			return "", err
		}
		later -= s.all(n)
		s.lanes, s.intervals = n, lifecycle.NewIntervals(s.Record.Targets, p)
		why, err = s.Perform(ctx, run.Rounds[subject.Session]{
			Warmup: p.Warmup, Rounds: p.Rounds, Budget: p.Budget, Turns: s.turns, Visit: s.visit,
			Precision: p.Precision, Widest: func() (float64, string) { return s.intervals.Widest(s.GivenUp()...) },
			Lanes: n, Need: p.RoundsFor(p.Comparisons(s.Record.Targets)), Fewer: ", targets or lanes", Worth: worth(n), Later: later,
		})
		whys = append(whys, why)
	}
	if len(slices.Compact(slices.Clone(whys))) == 1 {
		return why, err
	}
	for i, n := range p.Lanes {
		whys[i] = fmt.Sprintf("%d at once: %s", n, whys[i])
	}
	return strings.Join(whys, ", "), err
}

// worth is what a visit takes: a fixed part, and one for each lane.
func worth(lanes int) float64 { return float64(3 + lanes) }

// all is what is planned at a number of lanes.
func (s *schedule) all(lanes int) float64 {
	return worth(lanes) * float64((s.plan.Warmup+s.plan.Rounds)*len(s.Open))
}

// turns are those of a round, in an order that the seed, the lanes, the phase and the
// round's number decide.
func (s *schedule) turns(at run.Round) []turn {
	salt := uint64(s.lanes)<<33 | uint64(at.Number)
	if at.Phase == record.PhaseWarmup {
		salt |= 1 << 32
	}
	return run.Shuffled(s.plan.Seed, salt, s.Each(at, 0))
}
