// Package run adds sandboxes to a node until the requested end, under a guard that
// predicts usage, and measures how the machine recovers.
// It defines only the visit of a target; package core/run schedules the rounds. Each
// target first gets a trial of a few sandboxes. The trial warms up the target and gives
// the guard an estimate of the cost. A visit reads the node without sandboxes, adds
// them in steps, observes each step idle, and removes all of them. Only the guard
// decides how many sandboxes may start; see [guard].
package run

import (
	"context"
	"fmt"
	"time"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/density"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/ready"
	"github.com/tare-bench/tare/record"
)

// Options holds the plan of a run and its dependencies.
type Options struct {
	run.Options
	Plan     density.Options
	Targets  []subject.Target
	Workload subject.Workload
	Node     Node
	Meter    Meter
}

// Meter reads the node and a target's processes and cgroups, as the overhead instrument
// does.
type Meter interface {
	// Settle waits until the node's memory stops changing, for at most a given time. It
	// reports whether the memory settled.
	Settle(ctx context.Context, most time.Duration) bool
	// Read reads the node, the sandboxes and the target's own processes: identity,
	// usage and cgroups. With memory it also reads PSS.
	Read(ctx context.Context, boxes []subject.Sandbox, daemons []int, memory bool) record.Reading
	// Left returns the sandboxes' own cgroups that still exist.
	Left(of *record.Reading, ids []string) []string
	// LeftBeside returns remaining processes outside sandboxes, and mounts, that
	// contain one of the ids.
	LeftBeside(of *record.Reading, ids []string) *record.LeftBeside
}

type turn = run.Turn[subject.Session]

// trialBoxes is the number of sandboxes in a trial. It is large enough to see that the
// second one costs less than the first.
const trialBoxes = 3

// Run executes the plan and returns its record and judgement; see [run.Finish].
func Run(ctx context.Context, o Options) (*record.Record, *density.Judgement, error) {
	o.Plan.Seed = run.Seed(o.Plan.Seed)
	until, err := density.ParseUntil(o.Plan.Until)
	if err != nil {
		return nil, nil, err
	}
	r, err := run.Begin[subject.Session](o.Options, density.Name, o.Plan, o.Targets)
	s := &schedule{Run: r, options: o, until: until, trials: map[string]*guard{}}
	why := ""
	if err == nil {
		why, err = s.all(ctx)
	}
	return run.Finish(ctx, r, why, err, density.Judge)
}

type schedule struct {
	*run.Run[subject.Session]
	options Options
	until   density.Until
	lanes   int               // number of lanes per target
	trials  map[string]*guard // guard after each target's trial
}

func (s *schedule) all(ctx context.Context) (why string, err error) {
	p := &s.options.Plan
	if err := s.room(); err != nil {
		return "", err
	}
	env := subject.Env{Lanes: s.lanes, Timeout: p.Timeout, Limits: p.Limits, Workload: s.options.Workload}
	if err := s.OpenAll(ctx, ready.Opener(p.Ready, s.options.Targets, env)); err != nil {
		return "", err
	}
	for _, t := range s.Open {
		if ctx.Err() != nil {
			return "", nil
		}
		v := &visit{schedule: s, turn: turn{Target: t}, boxes: map[int]subject.Sandbox{}}
		if err := v.trial(ctx); err != nil {
			return "", err
		}
	}
	if p.DryRun {
		return "dry run", nil
	}
	return s.Perform(ctx, run.Rounds[subject.Session]{
		Rounds: p.Rounds, Budget: p.Budget, EachVisit: true, Fewer: ", targets, or end earlier",
		Turns: func(at run.Round) []turn { return run.Shuffled(p.Seed, uint64(at.Number), s.Each(at, 0)) },
		Visit: func(ctx context.Context, t turn) error {
			v := &visit{schedule: s, turn: t, boxes: map[int]subject.Sandbox{}}
			return v.do(ctx)
		},
	})
}

// Minimum cost of a sandbox and its lane. An idle process has 60 KiB of kernel
// memory, and a lane is a process too.
const (
	leastMemory = 128 << 10
	leastLane   = 2 // tasks
)

// trialMemory is the memory required above the floor for a trial, whose cost is not
// known yet.
const trialMemory = 64 << 20

// room sets the number of lanes per target. It is the maximum number of sandboxes,
// limited by the node's resources. room returns an error if the node has no room for a
// trial.
func (s *schedule) room() error {
	levels, err := s.options.Node.Levels()
	if err != nil {
		return fmt.Errorf("what the node has left cannot be read, and nothing is started without that: %w", err)
	}
	s.lanes = s.options.Plan.Top()
	if s.options.Plan.DryRun {
		s.lanes = min(s.lanes, trialBoxes)
	}
	g := newGuard(levels, nil)
	for _, w := range g.rooms {
		take := int64(0)
		switch {
		case w.Name == density.Memory || w.Name == ownMemory:
			take = leastMemory
		case isTasks(w.Name):
			take = leastLane
		default:
			continue
		}
		s.lanes = min(s.lanes, int(max(w.Left-w.Floor, 0)/take/int64(max(len(s.options.Targets), 1))))
	}
	n, by := g.fits()
	if w := g.rooms[0]; w.Left-w.Floor < trialMemory {
		n, by = 0, w.Name
	}
	if n < trialBoxes || s.lanes < 1 {
		advice := "use another node"
		switch by {
		case density.Memory:
			advice += ", or leave less with --keep-free"
		case ownPIDs, ownMemory:
			advice = "raise the limit of the cgroup that tare runs in, or run it in another"
		}
		return fmt.Errorf("nothing was started: %s; %s", g.because(by), advice)
	}
	return nil
}

// tell reports the next action and the number of sandboxes.
func (v *visit) tell(what string, sandboxes int) {
	v.Step(page.Sandboxes(sandboxes), v.Target.Info.Name, what)
}
