// Package run watches starts: what every process of one did, from the call
// to its return.
//
// It says what one start is and nothing else; rounds are those of core/run, in
// which every target is started a second time without watching where the plan asks
// what that costs. What happened is told by a [Watch], which of it belongs to
// a start is decided by package proctree, and what it means by package judge.
package run

import (
	"context"
	"errors"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/run/proctree"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/ready"
	"github.com/tare-bench/tare/record"
)

// Options are what a run needs besides its plan.
type Options struct {
	run.Options
	Plan    startup.Options
	Targets []subject.Target
	// Workload is what containers hold.
	Workload subject.Workload
	// Watch begins to watch all processes of the machine.
	Watch func() (Watch, error)
	// Callers are processes of tare's own that start others: whatever they
	// start during a start is part of it.
	Callers func() []int
	// Daemons are the engines' daemons that are known by nothing but their name.
	Daemons func() []proctree.Root
	// Logs are what the run's logs tell of the starts that were watched, and what was
	// read of them; nil: there are none.
	Logs func(ctx context.Context, watched []record.Start) ([]record.Start, *record.Logs, error)
}

// Watch tells what processes did, see [tracer.Tracer].
type Watch interface {
	Track(pids ...int) error
	Busy() int64
	Used() map[int]int64
	Take(until int64) ([]tracer.Event, error)
	Lost() int64
	CPU() time.Duration
	Close() error
}

type (
	opened = run.Target[subject.Session]
	turn   = run.Turn[subject.Session]
)

// The parts of a round: a start that is watched, and one that is not.
const (
	watched = iota
	unwatched
)

// Run performs the plan and returns the record of it and what is made of that, see
// [run.Finish].
func Run(ctx context.Context, o Options) (*record.Record, *startup.Judgement, error) {
	o.Plan.Seed = run.Seed(o.Plan.Seed)
	r, err := run.Begin[subject.Session](o.Options, "startup", o.Plan, o.Targets)
	s := &schedule{Run: r, options: o, throttling: machine.NewThrottling()}
	why := ""
	if err == nil {
		why, err = s.all(ctx)
	}
	return run.Finish(ctx, r, why, errors.Join(err, s.unwatch()), startup.Judge)
}

type schedule struct {
	*run.Run[subject.Session]
	options Options
	watch   Watch // nil while nothing is watched

	throttling *machine.Throttling
}

// all opens the targets and goes through the rounds.
func (r *schedule) all(ctx context.Context) (why string, err error) {
	p := &r.options.Plan
	if err := r.OpenAll(ctx, ready.Opener(p.Ready, r.options.Targets, subject.Env{Lanes: 1, Timeout: p.Timeout, Limits: p.Limits, Workload: r.options.Workload})); err != nil {
		return "", err
	}
	why, err = r.Perform(ctx, run.Rounds[subject.Session]{
		Warmup: p.Warmup, Rounds: p.Rounds, Budget: p.Budget, Fewer: " or targets", Turns: r.turns, Visit: r.visit,
	})
	if err == nil && ctx.Err() == nil && r.options.Logs != nil {
		err = r.logs(ctx)
	}
	return why, err
}

// logs puts what the run's logs tell of its starts behind them. A run whose logs cannot
// be read is one without.
func (r *schedule) logs(ctx context.Context) error {
	found, read, err := r.options.Logs(ctx, r.Record.Starts)
	if err != nil {
		return r.Finding(record.Finding{Code: startup.FoundUnread, Level: finding.Warning, Message: err.Error(),
			Advice: "the starts are shown without them; what the logs hold can be read by themselves: tare startup --log FILE"})
	}
	for _, s := range found {
		if err := r.Line(s); err != nil {
			return err
		}
	}
	return r.Line(read)
}

// turns start every target once, and once more without watching where that is
// asked for, in an order that the seed and the round's number decide.
func (r *schedule) turns(at run.Round) (turns []turn) {
	p := &r.options.Plan
	for _, t := range r.Open {
		switch {
		case t.Gone:
		case at.Phase == record.PhaseWarmup:
			turns = append(turns, turn{Round: at, Target: t, Part: unwatched})
		default:
			turns = append(turns, turn{Round: at, Target: t, Part: watched})
			if p.Untraced {
				turns = append(turns, turn{Round: at, Target: t, Part: unwatched})
			}
		}
	}
	number := at.Number // the warm-up's come first
	if at.Phase == record.PhaseMeasure {
		number += p.Warmup
	}
	return run.Shuffled(p.Seed, uint64(number), turns)
}

// visit is a start. The warm-up's are not recorded.
func (r *schedule) visit(ctx context.Context, t turn) error {
	r.Tell("", t.Target.Info.Name, "")
	x, err := r.start(ctx, t)
	if err != nil || x == nil || t.Phase == record.PhaseWarmup {
		return err
	}
	x.Order = t.Order
	return r.Line(*x)
}

// watching makes sure that processes are watched, or that they are not.
func (r *schedule) watching(wanted bool) error {
	if !wanted {
		return r.unwatch()
	}
	if r.watch != nil {
		return nil
	}
	w, err := r.options.Watch()
	if err != nil {
		return err
	}
	r.watch = w
	return nil
}

func (r *schedule) unwatch() error {
	if r.watch == nil {
		return nil
	}
	w := r.watch
	r.watch = nil
	return w.Close()
}
