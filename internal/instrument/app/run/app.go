// Package run runs the same service on every target, alone and with neighbours.
// It defines only the visit of a target; package core/run schedules the rounds. Each
// visit has its own sandbox. The visit starts it, polls it until it answers, warms it
// up, and loads it between two readings of the node. A neighbour runs in a second
// sandbox of the same target. That sandbox has its own session, since its workload
// differs.
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

// Options holds the plan of a run and its dependencies.
type Options struct {
	run.Options
	Plan       app.Options
	Targets    []subject.Target
	Workload   subject.Workload   // the service
	Neighbours []subject.Workload // workload of each neighbour in the plan
	FioPath    string             // fio in the sandboxes of neighbours; "" if not needed
	Meter      Meter
	// Pressure returns how long (µs) tasks in the cgroup of a process have waited so
	// far, or why that is unknown.
	Pressure func(pid int) (cpu, memory, io int64, err error)
}

// Meter observes the node during a window; see [snapshot.Reader].
type Meter interface {
	Begin(ctx context.Context, boxes []subject.Sandbox, daemons []int) *snapshot.Edge
	End(ctx context.Context, boxes []subject.Sandbox, daemons []int) *snapshot.Edge
	Seen(begin, end *snapshot.Edge, device string) record.Observed
}

type turn = run.Turn[subject.Session]

// Run executes the plan and returns its record and judgement; see [run.Finish].
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
	beside  []app.Neighbour // one per part of a round; the first is empty: without a neighbour
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

// opened returns the targets that were opened successfully.
func (s *schedule) opened() (all []record.Target) {
	for _, t := range s.Open {
		all = append(all, t.Info)
	}
	return all
}

// serving is the lane of the service.
const serving = 0

// open opens a target, and another session for its neighbours if there are any.
func (s *schedule) open(ctx context.Context, i int, runID, dir, stateDir string) (subject.Session, error) {
	p := &s.options.Plan
	env := subject.Env{RunID: runID, Dir: dir, StateDir: stateDir, Lanes: 1, Timeout: p.Timeout, Limits: p.Limits, Workload: s.options.Workload}
	own, err := ready.Opener(p.WhenReady(p.Ready), s.options.Targets, env)(ctx, i, runID, dir, stateDir)
	if err != nil || len(p.Neighbours) == 0 {
		return own, err
	}
	return besides(ctx, own, s.options.Targets[i], env, s.beside[1:], s.options.Neighbours)
}
