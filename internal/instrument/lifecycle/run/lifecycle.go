// Package run runs create, start, stop, rm and run on each target, one at a time or
// many at once. Where there are pods it also runs runp, stopp and rmp.
// It defines only the visit of a target. Package core/run schedules the rounds, and
// package lifecycle judges the record. Results are recorded immediately.
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

// Options holds the plan of a run and its dependencies.
type Options struct {
	run.Options
	Plan    lifecycle.Options
	Targets []subject.Target
	// Workload is the workload of the containers.
	Workload subject.Workload
	// Meter finds processes and cgroups that outlive their sandboxes; nil: no check.
	Meter Meter
}

type turn = run.Turn[subject.Session]

// Run executes the plan and returns its record and judgement; see [run.Finish].
func Run(ctx context.Context, o Options) (*record.Record, *lifecycle.Judgement, error) {
	o.Plan.Seed = run.Seed(o.Plan.Seed)
	r, err := run.Begin[subject.Session](o.Options, "lifecycle", o.Plan, o.Targets)
	s := &schedule{Run: r, plan: o.Plan, workload: o.Workload, companions: newCompanions(o.Meter)}
	why := ""
	if err == nil {
		why, err = s.sweep(ctx, o.Targets)
	}
	for _, f := range s.companions.findings(ctx) { // before sessions kill what their commands left behind
		err = run.Together(err, s.Finding(f))
	}
	return run.Finish(ctx, r, why, err, lifecycle.Judge)
}

type schedule struct {
	*run.Run[subject.Session]
	plan      lifecycle.Options
	workload  subject.Workload
	lanes     int                  // of the current sweep step
	intervals *lifecycle.Intervals // at the current number of lanes

	companions companions
}

// sweep measures each number of lanes. It returns why it ended, for each number of
// lanes if the reasons differ.
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

// worth estimates the relative cost of a visit: a fixed part plus one unit per lane.
func worth(lanes int) float64 { return float64(3 + lanes) }

// all returns the total cost planned at a number of lanes.
func (s *schedule) all(lanes int) float64 {
	return worth(lanes) * float64((s.plan.Warmup+s.plan.Rounds)*len(s.Open))
}

// turns returns the turns of a round. Their order depends on the seed, the lanes, the
// phase and the round number.
func (s *schedule) turns(at run.Round) []turn {
	salt := uint64(s.lanes)<<33 | uint64(at.Number)
	if at.Phase == record.PhaseWarmup {
		salt |= 1 << 32
	}
	return run.Shuffled(s.plan.Seed, salt, s.Each(at, 0))
}
