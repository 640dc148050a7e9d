// Package run loads the same service on every target: alone, and beside neighbours.
//
// It says what one visit of a target is and nothing else; rounds are those of
// core/run. A visit is a sandbox of its own: it is started, asked until it answers,
// warmed up, and loaded between two readings of the node. A neighbour is in a second
// sandbox of the same target, of a session of its own, since it has another workload.
package run

import (
	"context"
	"slices"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/app"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/ready"
	"github.com/tare-bench/tare/record"
)

// Options are what a run needs besides its plan.
type Options struct {
	run.Options
	Plan     app.Options
	Targets  []subject.Target
	Workload subject.Workload   // the service
	Beside   []subject.Workload // what each of the plan's neighbours needs in its sandbox
	FioPath  string             // of fio in the sandboxes of neighbours, "" where none needs it
	Meter    Meter
	// Pressure reads for how long (µs) tasks in the cgroup of a process have waited so
	// far, or says why it cannot.
	Pressure func(pid int) (cpu, memory, io int64, err error)
}

// Meter sees what happens on the node during a window, see [snapshot.Reader].
type Meter interface {
	Begin(ctx context.Context, boxes []subject.Sandbox, daemons []int) *snapshot.Edge
	End(ctx context.Context, boxes []subject.Sandbox, daemons []int) *snapshot.Edge
	Seen(begin, end *snapshot.Edge, device string) record.Observed
}

type turn = run.Turn[subject.Session]

// Run performs the plan and returns the record of it and what is made of that, see
// [run.Finish].
func Run(ctx context.Context, o Options) (*record.Record, *app.Judgement, error) {
	o.Plan.Seed, o.Plan.Load = run.Seed(o.Plan.Seed), o.Plan.Filled()
	s := &schedule{options: o, beside: append([]app.Neighbour{{}}, o.Plan.Parsed()...)}
	for _, n := range s.beside {
		s.options.Before = append(s.options.Before, homeless(n, o.Targets)...)
	}
	var err error
	s.Run, err = run.Begin[subject.Session](s.options.Options, app.Name, o.Plan, o.Targets)
	why := ""
	if err == nil {
		why, err = s.all(ctx)
	}
	return run.Finish(ctx, s.Run, why, err, app.Judge)
}

type schedule struct {
	*run.Run[subject.Session]
	options Options
	beside  []app.Neighbour // of each part of a round; the first is none
}

func (s *schedule) all(ctx context.Context) (why string, err error) {
	p := &s.options.Plan
	if err := s.OpenAll(ctx, s.open); err != nil {
		return "", err
	}
	return s.Perform(ctx, run.Rounds[subject.Session]{
		Rounds: p.Rounds, Budget: p.Budget, EachVisit: true, Fewer: ", targets or neighbours", Need: p.RoundsFor(p.Comparisons(s.opened())), Visit: s.visit,
		Turns: func(at run.Round) []turn {
			var turns []turn
			for part := range s.beside {
				turns = append(turns, slices.DeleteFunc(s.Each(at, part), func(t turn) bool { return part > 0 && roomOf(t) == nil })...)
			}
			return run.Shuffled(p.Seed, uint64(at.Number), turns)
		},
	})
}

// opened are the targets that could be.
func (s *schedule) opened() (all []record.Target) {
	for _, t := range s.Open {
		all = append(all, t.Info)
	}
	return all
}

// serving is the lane of the service.
const serving = 0

// open opens a target, and again for its neighbours where there are any.
func (s *schedule) open(ctx context.Context, i int, runID, dir, stateDir string) (subject.Session, error) {
	p := &s.options.Plan
	env := subject.Env{RunID: runID, Dir: dir, StateDir: stateDir, Lanes: 1, Timeout: p.Timeout, Limits: p.Limits, Workload: s.options.Workload}
	own, err := ready.Opener(p.WhenReady(p.Ready), s.options.Targets, env)(ctx, i, runID, dir, stateDir)
	if err != nil || len(p.Neighbours) == 0 {
		return own, err
	}
	return besides(ctx, own, s.options.Targets[i], env, s.beside[1:], s.options.Beside)
}
