// Package startup watches starts: what every process of one did, from the call
// to its return.
//
// It schedules and nothing else. Every round starts every target once, in a
// fresh random order, and a second time without watching where the plan asks
// what watching costs. What happened is told by a [Watch], which of it belongs to
// a start is decided by package proctree, and what it means by package judge.
package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/startup/proctree"
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Options are what a run needs besides its plan.
type Options struct {
	run.Options
	Plan plan.Startup
	// Watch begins to watch all processes of the machine.
	Watch func() (Watch, error)
	// Callers are processes of tare's own that start others: whatever they
	// start during a start is part of it.
	Callers func() []int
	// Daemons are the engines' daemons that are known by nothing but their name.
	Daemons func() []proctree.Root
	// Progress is told what is done next. May be nil.
	Progress func(Progress)
}

// Watch tells what processes did, see [tracer.Tracer].
type Watch interface {
	Track(pids ...int) error
	Busy() int64
	Take(until int64) ([]tracer.Event, error)
	Lost() int64
	CPU() time.Duration
	Close() error
}

// Progress is where a run is.
type Progress struct {
	Round, Rounds int // the round from 0
	Warmup        bool
	Target        string
	Elapsed, Left time.Duration
}

// Run performs the plan and returns the record of it, which is as far as the
// run came. The error says what kept it from going on: ctx's end is not one
// (the record's End says "interrupted"), and starts that failed are not either.
func Run(ctx context.Context, o Options) (*record.Record, error) {
	o.Plan.Seed = run.Seed(o.Plan.Seed)
	c, err := run.Begin(o.Options, "startup", o.Plan)
	if err != nil {
		return c.Record, err
	}
	r := &schedule{Run: c, options: o}
	why, err := r.all(ctx)
	err = errors.Join(err, r.unwatch())
	c.Close()
	return c.Record, c.Finish(ctx, why, err, func(rec *record.Record) ([]record.Finding, int, error) {
		j, err := judge.StartupOf(rec)
		if err != nil {
			return nil, 0, err
		}
		return j.Findings, j.Failed, nil
	})
}

type schedule struct {
	*run.Run
	options Options
	watch   Watch // nil while nothing is watched
	done    int
}

// all opens the targets and goes through the rounds.
func (r *schedule) all(ctx context.Context) (why string, err error) {
	p := &r.options.Plan
	if err := r.OpenAll(ctx, subject.Env{Lanes: 1, Timeout: p.Timeout, Limits: p.Limits}); err != nil || ctx.Err() != nil {
		return "", err
	}
	for i := range p.Warmup + p.Rounds {
		round, warmup := i-p.Warmup, i < p.Warmup
		switch {
		case ctx.Err() != nil:
			return "", nil
		case !warmup && time.Since(r.Began) > p.Budget:
			return "budget spent", r.spent(round)
		case !slices.ContainsFunc(r.Open, func(w *run.Weighed) bool { return !w.Gone }):
			return "every target was given up", nil
		}
		if err := r.round(ctx, i, round, warmup); err != nil {
			return "", err
		}
	}
	return "rounds", nil
}

func (r *schedule) spent(rounds int) error {
	level := "warning"
	if rounds == 0 {
		level = "error" // nothing was seen
	}
	return r.Finding(record.Finding{Code: finding.Budget, Level: level,
		Message: fmt.Sprintf("the budget of %v was spent after %d of %d rounds", r.options.Plan.Budget, rounds, r.options.Plan.Rounds),
		Advice:  "raise --budget, or use fewer --rounds or targets"})
}

// turn is one start of a round.
type turn struct {
	w       *run.Weighed
	watched bool
}

// round starts every target once, and once more without watching where that is
// asked for, in an order that the seed and the round's number decide.
func (r *schedule) round(ctx context.Context, number, round int, warmup bool) error {
	var turns []turn
	for _, w := range r.Open {
		if w.Gone {
			continue
		}
		turns = append(turns, turn{w, !warmup})
		if r.options.Plan.Untraced && !warmup {
			turns = append(turns, turn{w, false})
		}
	}
	rand.New(rand.NewPCG(r.options.Plan.Seed, uint64(number))).Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	for place, t := range turns {
		if ctx.Err() != nil {
			return nil
		}
		if t.w.Gone {
			continue
		}
		r.tell(max(round, 0), warmup, t.w.Info.Name)
		s, err := r.start(ctx, t, round)
		if err != nil {
			return err
		}
		r.done++
		if warmup || s == nil {
			continue
		}
		s.Type, s.Order = record.TypeStart, place
		r.Record.Starts = append(r.Record.Starts, *s)
		if err := r.Line(*s); err != nil {
			return err
		}
	}
	return nil
}

// watched makes sure that processes are watched, or that they are not.
func (r *schedule) watched(wanted bool) error {
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

func (r *schedule) tell(round int, warmup bool, name string) {
	if r.options.Progress == nil {
		return
	}
	p := Progress{Round: round, Rounds: r.options.Plan.Rounds, Warmup: warmup, Target: name, Elapsed: time.Since(r.Began)}
	each := len(r.Open)
	all := each * (r.options.Plan.Warmup + r.options.Plan.Rounds)
	if r.options.Plan.Untraced {
		all += each * r.options.Plan.Rounds
	}
	if r.done > 0 && all > 0 {
		p.Left = time.Duration(float64(p.Elapsed) / float64(r.done) * float64(max(all-r.done, 0)))
		p.Left = min(p.Left, max(r.options.Plan.Budget-p.Elapsed, 0))
	}
	r.options.Progress(p)
}
