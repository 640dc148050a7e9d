// Package lifecycle weighs what create, start, stop, rm and run cost on each
// target, and where there are pods runp, stopp and rmp, one at a time or many
// at once.
//
// It schedules and nothing else: targets are prepared, warmed up, and visited
// once in every round in a fresh random order, so that whatever drifts hits
// all of them alike; everything that happens goes into the record at once, and
// what can be said of it is said by package judge.
package run

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Options are what a run needs besides its plan.
type Options struct {
	run.Options
	Plan plan.Lifecycle
	// Node reads the machine's state between rounds. May be nil.
	Node func() record.Node
	// Progress is told before each batch. May be nil.
	Progress func(Progress)
}

// Progress is where a run is.
type Progress struct {
	Phase   record.Phase
	Lanes   int
	Round   int // from 0
	Rounds  int // as planned; more may follow for the precision
	Target  string
	Op      subject.Op
	Elapsed time.Duration
	Left    time.Duration // an estimate; 0 while there is none
}

// Run performs the plan and returns the record of it, which is as far as the
// run came. The error says what kept it from going on: ctx's end is not one
// (the record's End says "interrupted"), and failed operations are not either.
func Run(ctx context.Context, o Options) (*record.Record, error) {
	o.Plan.Seed = run.Seed(o.Plan.Seed)
	c, err := run.Begin(o.Options, "lifecycle", o.Plan)
	if err != nil {
		return c.Record, err
	}
	r := &schedule{Run: c, Plan: o.Plan, Node: o.Node, Progress: o.Progress, barren: map[*run.Weighed]int{}}
	err = c.OpenAll(ctx, subject.Env{Lanes: slices.Max(o.Plan.Lanes), Timeout: o.Plan.Timeout, Limits: o.Plan.Limits})
	why := ""
	if err == nil && ctx.Err() == nil {
		why, err = r.sweep(ctx)
	}
	c.Close()
	return c.Record, c.Finish(ctx, why, err, func(rec *record.Record) ([]record.Finding, int, error) {
		l, err := lifecycle.Judge(rec)
		if err != nil {
			return nil, 0, err
		}
		return l.Found, l.Failed, nil
	})
}

type schedule struct {
	*run.Run
	Plan     plan.Lifecycle
	Node     func() record.Node
	Progress func(Progress)
	barren   map[*run.Weighed]int // rounds in a row in which nothing succeeded
	done     int                  // rounds finished, warm-up included
	spent    time.Duration        // in them
}

// sweep goes through the numbers of lanes.
func (r *schedule) sweep(ctx context.Context) (why string, err error) {
	for _, lanes := range r.Plan.Lanes {
		for i := range r.Plan.Warmup {
			if r.over() {
				break // measure says so
			}
			if err := r.round(ctx, record.PhaseWarmup, lanes, i); err != nil || ctx.Err() != nil {
				return "", err
			}
		}
		if why, err = r.measure(ctx, lanes); err != nil || ctx.Err() != nil {
			return "", err
		}
	}
	return why, nil
}

// measure does rounds until the plan's number is reached and, where a
// precision is asked for, until it is reached or the budget is spent.
func (r *schedule) measure(ctx context.Context, lanes int) (why string, err error) {
	for i := 0; ; i++ {
		over := r.over()
		switch {
		case over && i < r.Plan.Rounds:
			level := "warning"
			if i == 0 {
				level = "error" // nothing was weighed
			}
			return "budget spent", r.Finding(record.Finding{Code: finding.Budget, Level: level, Lanes: lanes,
				Message: fmt.Sprintf("the budget of %v was spent after %d of %d rounds", r.Plan.Budget, i, r.Plan.Rounds),
				Advice:  "raise --budget, or use fewer --rounds, targets or lanes"})
		case i >= r.Plan.Rounds && r.Plan.Precision == 0:
			return "rounds", nil
		case i >= r.Plan.Rounds:
			worst, where, err := r.precision(lanes)
			if err != nil || worst <= r.Plan.Precision {
				return "precision reached", err
			}
			if over {
				return "budget spent", r.Finding(record.Finding{Code: finding.NotPrecise, Level: "warning", Lanes: lanes,
					Message: fmt.Sprintf("±%.1f %% was not reached in %v (%d rounds): %s", 100*r.Plan.Precision, r.Plan.Budget, i, widest(worst, where)),
					Advice:  "raise --budget, or ask for less: on a noisy machine an interval shrinks with the square root of the rounds"})
			}
		}
		if err := r.round(ctx, record.PhaseMeasure, lanes, i); err != nil || ctx.Err() != nil {
			return "", err
		}
		if !slices.ContainsFunc(r.Open, func(w *run.Weighed) bool { return !w.Gone }) {
			return "every target was given up", nil
		}
	}
}

// over tells that no new round may be begun.
func (r *schedule) over() bool { return time.Since(r.Began) > r.Plan.Budget }

// precision is the widest interval of the targets that still take part: one
// that was given up will never get narrower.
func (r *schedule) precision(lanes int) (worst float64, where string, err error) {
	l, err := lifecycle.Judge(r.Record)
	if err != nil {
		return 0, "", err
	}
	for i := range l.Tables {
		if l.Tables[i].Lanes == lanes {
			worst, where = l.Tables[i].Precision(r.gone()...)
		}
	}
	return worst, where, nil
}

func widest(worst float64, where string) string {
	if math.IsInf(worst, 1) {
		return "there is no interval yet of " + where
	}
	return fmt.Sprintf("the widest interval is ±%.1f %%, of %s", 100*worst, where)
}

func (r *schedule) gone() (names []string) {
	for _, w := range r.Open {
		if w.Gone {
			names = append(names, w.Info.Name)
		}
	}
	return names
}

// round visits every target once, in an order that the seed, the phase and the
// round's number decide.
func (r *schedule) round(ctx context.Context, phase record.Phase, lanes, number int) error {
	begin := time.Now()
	salt := uint64(lanes)<<33 | uint64(number)
	if phase == record.PhaseWarmup {
		salt |= 1 << 32
	}
	order := rand.New(rand.NewPCG(r.Plan.Seed, salt)).Perm(len(r.Open))
	for place, i := range order {
		w := r.Open[i]
		if w.Gone {
			continue
		}
		v := visit{schedule: r, w: w, phase: phase, lanes: lanes, round: number, order: place}
		if err := v.do(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	r.done++
	r.spent += time.Since(begin)
	if r.Node == nil {
		return nil
	}
	n := r.Node()
	n.Type, n.Round, n.Phase, n.Lanes = record.TypeNode, number, phase, lanes
	r.Record.Nodes = append(r.Record.Nodes, n)
	return r.Line(n)
}
