// Package run measures what sandboxes add to a node, idle and under load. It measures
// memory and CPU time by role and by cgroup.
//
// It defines one visit of a target; rounds are those of core/run. A visit
//   - reads the node without sandboxes of the target,
//   - starts the smallest number of sandboxes and runs the phases on them,
//   - holds every larger number idle,
//   - removes all sandboxes the way users do, and reads the node again.
//
// A [Meter] takes the readings; packages ledger and overhead evaluate them.
package run

import (
	"context"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/ready"
	"github.com/tare-bench/tare/record"
)

// Options are the inputs of a run in addition to its plan.
type Options struct {
	run.Options
	Plan       overhead.Options
	Targets    []subject.Target
	Meter      Meter
	Workload   subject.Workload // programs and files that the phases need inside the sandboxes
	FioPath    string           // path of fio inside the sandboxes; "" if no phase needs it
	FioVersion string
	// Free returns the number of bytes that can be written below Workload.Volume.
	Free func() (int64, error)
}

// Meter reads the node and a target's processes and cgroups.
type Meter interface {
	// Settle waits until the node's memory stops changing, for at most the given
	// time. It reports whether memory settled.
	Settle(ctx context.Context, most time.Duration) bool
	// Read reads the node, the sandboxes and the target's daemons: their processes, usage
	// and cgroups. Without memory it omits PSS, which is expensive to read. The caller
	// fills in what only the schedule knows, such as round and phase.
	Read(ctx context.Context, boxes []subject.Sandbox, daemons []int, memory bool) record.Reading
	// Watch samples the groups and daemons of a reading, and the node, until stop
	// is called.
	Watch(of *record.Reading, interval time.Duration) (stop func() record.Series)
	// Left returns the remaining own groups of the sandboxes: those of a reading,
	// and any whose name contains one of the ids.
	Left(of *record.Reading, ids []string) []string
	// LeftBeside returns remaining processes and mounts that contain one of the ids. It
	// looks in the mount namespaces of tare and of the daemons of a reading.
	LeftBeside(of *record.Reading, ids []string) *record.LeftBeside
	// Around reads the groups at these paths, without missing ones.
	Around(paths []string) []record.Group
}

type turn = run.Turn[subject.Session]

// Run performs the plan and returns the record and its judgement, see [run.Finish].
func Run(ctx context.Context, o Options) (*record.Record, *overhead.Judgement, error) {
	o.Plan.Seed = run.Seed(o.Plan.Seed)
	r, err := run.Begin[subject.Session](o.Options, overhead.Name, o.Plan, o.Targets)
	s := &schedule{Run: r, options: o, rest: run.Patience{Most: o.Plan.Settle}, phases: o.Plan.Resolved(), silent: map[string]bool{}, skipped: map[[2]string]bool{}, takes: map[string]int64{}, around: map[string][]string{}}
	why := ""
	if err == nil {
		why, err = s.all(ctx)
	}
	return run.Finish(ctx, r, why, err, overhead.Judge)
}

type schedule struct {
	*run.Run[subject.Session]
	options Options
	rest    run.Patience // until the node's memory stops changing
	phases  []overhead.Phase
	silent  map[string]bool     // targets without engine statistics
	skipped map[[2]string]bool  // phases that were skipped, by target and phase
	takes   map[string]int64    // the most memory seen per sandbox of a target, in bytes
	around  map[string][]string // the parent groups of the target's sandboxes
}

// settle waits until the node's memory stops changing, and reports whether it did.
func (s *schedule) settle(ctx context.Context) bool {
	return s.rest.Wait(func(most time.Duration) bool { return s.options.Meter.Settle(ctx, most) })
}

// all performs the rounds after a warm-up. The first sandbox of a target reads its
// programs from disk and grows the daemon's heap.
func (s *schedule) all(ctx context.Context) (why string, err error) {
	p := &s.options.Plan
	env := subject.Env{Lanes: slices.Max(p.Sandboxes), Timeout: p.Timeout, Limits: p.Limits, Workload: s.options.Workload}
	if err := s.OpenAll(ctx, ready.Opener(p.WhenReady(p.Ready), s.options.Targets, env)); err != nil {
		return "", err
	}
	for _, t := range s.Open {
		if ctx.Err() != nil {
			return "", nil
		}
		v := &visit{schedule: s, turn: turn{Target: t}}
		if err := v.warmUp(ctx); err != nil {
			return "", err
		}
	}
	return s.Perform(ctx, run.Rounds[subject.Session]{
		Rounds: p.Rounds, Budget: p.Budget, EachVisit: true, Fewer: ", targets, phases or sandboxes", Need: p.RoundsFor(p.Comparisons(len(s.Open))),
		Turns: func(at run.Round) []turn { return run.Shuffled(p.Seed, uint64(at.Number), s.Each(at, 0)) },
		Visit: func(ctx context.Context, t turn) error {
			v := &visit{schedule: s, turn: t}
			return v.do(ctx)
		},
	})
}
