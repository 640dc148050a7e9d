// Package overhead weighs what a sandbox adds to a node: whose memory, whose
// CPU, charged to which cgroup, idle and under load, for one sandbox and for
// many.
//
// It schedules and nothing else. Every round visits every target once, in a
// fresh random order. A visit reads the node without a sandbox of the target;
// starts as many sandboxes as the smallest count and goes through the phases on
// them; holds every larger count idle; removes everything, as its users would;
// and reads the node again. What is read is decided by a [Meter], what it means
// by packages ledger and judge.
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
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Options are what a run needs besides its plan.
type Options struct {
	run.Options
	Plan       plan.Overhead
	Meter      Meter
	Workload   subject.Workload // what the phases need in the sandboxes
	FioPath    string           // of fio inside the sandboxes, "" where no phase needs it
	FioVersion string
	// Free says how many bytes can be written below Workload.Volume. May be nil.
	Free func() (int64, error)
	// Progress is told what is done next. May be nil.
	Progress func(Progress)
}

// Progress is where a run is.
type Progress struct {
	Round, Rounds int // the round from 0
	Target        string
	Phase         string // or what is done besides: "starting", "removing"
	Sandboxes     int
	Elapsed, Left time.Duration // Left is an estimate; 0 while there is none
}

// Meter reads the node and a target's processes and cgroups.
type Meter interface {
	// Settle waits until the node's memory stops changing, at most for a
	// time, and tells whether it did.
	Settle(ctx context.Context, most time.Duration) bool
	// Read reads the node, and of the sandboxes and the target's own processes
	// who they are, what they use and where they are charged. Without memory
	// the processes' own (PSS) is left out, which is costly to read. What the
	// schedule knows (round, phase, …) is left to the caller.
	Read(ctx context.Context, boxes []subject.Sandbox, staff []subject.Process, memory bool) record.Reading
	// Watch samples the groups and daemons of a reading, and the node, until
	// stop is called.
	Watch(of *record.Reading, interval time.Duration) (stop func() record.Series)
	// Left are the groups of the sandboxes' own that are still there: those of a
	// reading, and any that bears one of the ids.
	Left(of *record.Reading, ids []string) []string
}

// Run performs the plan and returns the record of it, which is as far as the
// run came. The error says what kept it from going on: ctx's end is not one
// (the record's End says "interrupted"), and phases that failed are not either.
func Run(ctx context.Context, o Options) (*record.Record, error) {
	o.Plan.Seed = run.Seed(o.Plan.Seed)
	phases, err := o.Plan.Resolved()
	if err != nil {
		return nil, err
	}
	c, err := run.Begin(o.Options, "overhead", o.Plan)
	if err != nil {
		return c.Record, err
	}
	r := &schedule{Run: c, Options: o, phases: phases, silent: map[string]bool{}, takes: map[string]int64{}}
	most := slices.Max(o.Plan.Sandboxes)
	err = c.OpenAll(ctx, subject.Env{Lanes: most, Timeout: o.Plan.Timeout, Limits: o.Plan.Limits, Workload: o.Workload})
	why := ""
	if err == nil && ctx.Err() == nil {
		why, err = r.rounds(ctx)
	}
	c.Close()
	return c.Record, c.Finish(ctx, why, err, func(rec *record.Record) ([]record.Finding, int, error) {
		j, err := judge.OverheadOf(rec)
		if err != nil {
			return nil, 0, err
		}
		return j.Findings, j.Failed, nil
	})
}

type schedule struct {
	*run.Run
	Options Options
	phases  []plan.Phase
	round   int
	work    work             // done and planned, for the estimate
	silent  map[string]bool  // targets whose engines give no statistics
	takes   map[string]int64 // the most memory that a sandbox of a target was seen to take, bytes
}

// work counts visits.
type work struct{ done, all int }

// rounds goes through the rounds, after a warm-up: the first sandbox of a
// target reads its programs from the disk and makes its daemon's heap grow.
func (r *schedule) rounds(ctx context.Context) (why string, err error) {
	for _, w := range r.Open {
		if ctx.Err() != nil {
			return "", nil
		}
		v := &visit{schedule: r, w: w}
		if err := v.warmUp(ctx); err != nil {
			return "", err
		}
	}
	r.work.all = r.Options.Plan.Rounds * len(r.Open)
	for r.round = range r.Options.Plan.Rounds {
		order := rand.New(rand.NewPCG(r.Options.Plan.Seed, uint64(r.round))).Perm(len(r.Open))
		for place, i := range order {
			w := r.Open[i]
			if w.Gone {
				continue
			}
			if time.Since(r.Began) > r.Options.Plan.Budget {
				return "budget spent", r.budgetSpent(place)
			}
			v := &visit{schedule: r, w: w, order: place}
			if err := v.do(ctx); err != nil || ctx.Err() != nil {
				return "", err
			}
			r.work.done++
		}
		if !slices.ContainsFunc(r.Open, func(w *run.Weighed) bool { return !w.Gone }) {
			return "every target was given up", nil
		}
	}
	return "rounds", nil
}

func (r *schedule) budgetSpent(place int) error {
	level := "warning"
	if r.round == 0 && place == 0 {
		level = "error" // nothing was weighed
	}
	return r.Finding(record.Finding{Code: finding.Budget, Level: level,
		Message: fmt.Sprintf("the budget of %v was spent in round %d of %d", r.Options.Plan.Budget, r.round+1, r.Options.Plan.Rounds),
		Advice:  "raise --budget, or use fewer --rounds, targets, phases or sandboxes"})
}

func (r *schedule) reading(x record.Reading) error {
	x.Type = record.TypeReading
	r.Record.Readings = append(r.Record.Readings, x)
	return r.Line(x)
}

func (r *schedule) series(x record.Series) error {
	x.Type = record.TypeSeries
	r.Record.Series = append(r.Record.Series, x)
	return r.Line(x)
}

func (r *schedule) tell(target, phase string, sandboxes int) {
	if r.Options.Progress == nil {
		return
	}
	p := Progress{Round: r.round, Rounds: r.Options.Plan.Rounds, Target: target, Phase: phase, Sandboxes: sandboxes, Elapsed: time.Since(r.Began)}
	if r.work.done > 0 {
		p.Left = time.Duration(float64(p.Elapsed) / float64(r.work.done) * float64(r.work.all-r.work.done))
		p.Left = min(p.Left, max(r.Options.Plan.Budget-p.Elapsed, 0))
	}
	r.Options.Progress(p)
}

// errCutShort ends a visit early; what it means has been recorded.
var errCutShort = errors.New("the visit was cut short")
