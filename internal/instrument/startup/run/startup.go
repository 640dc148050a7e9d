// Package run watches starts. It records the activity of each process of a start, from
// the call to its return.
//
// The package performs one start; core/run executes the rounds. The plan may request a
// second start of each target without a watch, to measure the overhead of watching. A
// [Watch] reports the events, package proctree selects the events of a start, and
// package startup judges them.
package run

import (
	"context"
	"errors"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/run/proctree"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/ready"
	"github.com/tare-bench/tare/record"
)

// Options are the dependencies of a run and its plan.
type Options struct {
	run.Options
	Plan    startup.Options
	Targets []subject.Target
	// Workload is the workload of the containers.
	Workload subject.Workload
	// Watch begins watching all processes of the machine.
	Watch func() (Watch, error)
	// Callers returns the processes of tare that start other processes. Their children
	// during a start belong to it.
	Callers func() []int
	// Daemons returns the engines' daemons that are known only by name.
	Daemons func() []proctree.Root
	// Logs returns the watched starts merged with the run's logs, and the statistics of
	// the logs. It is nil without logs.
	Logs func(ctx context.Context, watched []record.Start) ([]record.Start, *record.Logs, error)
}

// Watch reports process events; see [tracer.Tracer].
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

// The parts of a round: a start with and without a watch.
const (
	watched = iota
	unwatched
)

// Run executes the plan and returns its record and judgement; see [run.Finish].
func Run(ctx context.Context, o Options) (*record.Record, *startup.Judgement, error) {
	o.Plan.Seed = run.Seed(o.Plan.Seed)
	r, err := run.Begin[subject.Session](o.Options, "startup", o.Plan, o.Targets)
	s := &schedule{Run: r, options: o, throttling: cgroup.NewThrottling()}
	why := ""
	if err == nil {
		why, err = s.all(ctx)
	}
	return run.Finish(ctx, r, why, errors.Join(err, s.unwatch()), startup.Judge)
}

type schedule struct {
	*run.Run[subject.Session]
	options Options
	watch   Watch // nil if nothing is watched

	throttling *cgroup.Throttling
}

// all opens the targets and executes the rounds.
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

// logs adds the data from logs to the starts of the run. Unreadable logs cause a
// finding, not an error.
func (r *schedule) logs(ctx context.Context) error {
	found, read, err := r.options.Logs(ctx, r.Record.Starts)
	if err != nil {
		return r.Finding(record.Finding{Code: startup.FoundUnread, Level: finding.Warning, Message: err.Error(),
			Advice: "the starts are shown without logs; read the logs separately: tare startup --log FILE"})
	}
	for _, s := range found {
		if err := r.Line(s); err != nil {
			return err
		}
	}
	return r.Line(read)
}

// turns returns one start per target, and one without a watch if the plan asks for it.
// The seed and the round number determine the order.
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
	number := at.Number // the warm-up comes first
	if at.Phase == record.PhaseMeasure {
		number += p.Warmup
	}
	return run.Shuffled(p.Seed, uint64(number), turns)
}

// visit performs one start. Warm-up starts are not recorded.
func (r *schedule) visit(ctx context.Context, t turn) error {
	r.Step("", t.Target.Info.Name, "")
	x, err := r.start(ctx, t)
	if err != nil || x == nil || t.Phase == record.PhaseWarmup {
		return err
	}
	x.Order = t.Order
	return r.Line(*x)
}

// watching turns the watch on or off.
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
