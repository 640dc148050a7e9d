// Package run adds sandboxes to a node until the stated end, under a guard that looks
// ahead, and sees how the machine comes back.
//
// It says what one visit of a target is and nothing else; rounds are those of core/run. A
// trial of a few sandboxes comes first on each target: it warms the target up and tells
// the guard what one costs. A visit then reads the node without a sandbox, adds them in
// steps, watches each step idle, and removes all of them. What is foreseen, and so how many
// may be begun, is the guard's alone, see [guard].
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

// Options are what a run needs besides its plan.
type Options struct {
	run.Options
	Plan     density.Options
	Targets  []subject.Target
	Workload subject.Workload
	Node     Node
	Meter    Meter
}

// Meter reads the node and a target's processes and cgroups, as that of an overhead.
type Meter interface {
	// Settle waits until the node's memory stops changing, at most for a time, and tells
	// whether it did.
	Settle(ctx context.Context, most time.Duration) bool
	// Read reads the node, and of the sandboxes and the target's own processes who they
	// are, what they use and where they are charged; with memory also their PSS.
	Read(ctx context.Context, boxes []subject.Sandbox, daemons []int, memory bool) record.Reading
	// Left are the groups of the sandboxes' own that are still there.
	Left(of *record.Reading, ids []string) []string
	// LeftBeside are processes beside sandboxes and mounts that bear one of the ids.
	LeftBeside(of *record.Reading, ids []string) *record.LeftBeside
}

type turn = run.Turn[subject.Session]

// trialBoxes are those of a trial: enough to see that the second costs less than the first.
const trialBoxes = 3

// Run performs the plan and returns the record of it and what is made of that, see
// [run.Finish].
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
	lanes   int               // that targets were opened with
	trials  map[string]*guard // what was learnt in each target's
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

// What a sandbox takes at the very least, with the lane that starts it: a process that
// does nothing has 60 KiB of the kernel's memory, and a lane is one, too.
const (
	leastMemory = 128 << 10
	leastLane   = 2 // tasks
)

// trialMemory is how much has to be there above the floor before a trial: what a sandbox
// takes is not known yet.
const trialMemory = 64 << 20

// room decides how many lanes targets are opened with: as many as there may be sandboxes,
// and no more than the node holds of any. It refuses a node that is too full for a trial.
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
		case w.Level.Name == density.Memory || w.Level.Name == ownMemory:
			take = leastMemory
		case isTasks(w.Level.Name):
			take = leastLane
		default:
			continue
		}
		s.lanes = min(s.lanes, int(max(w.Level.Left-w.Level.Floor, 0)/take/int64(max(len(s.options.Targets), 1))))
	}
	n, by := g.fits()
	if w := g.rooms[0]; w.Level.Left-w.Level.Floor < trialMemory {
		n, by = 0, w.Level.Name
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

// tell says what is done next, with so many sandboxes.
func (v *visit) tell(what string, sandboxes int) {
	v.Tell(page.Sandboxes(sandboxes), v.Target.Info.Name, what)
}
