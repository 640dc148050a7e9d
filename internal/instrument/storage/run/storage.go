// Package run measures how much I/O performance a runtime costs. It runs every job on
// every target and volume, with direct I/O or through the page cache.
//
// It defines one visit of a target; rounds are those of core/run. Volumes are measured
// one after another. In each round every target is visited once for each job and cache
// mode, in a new random order. Drift of the device then affects all targets alike.
//
// A visit has its own sandbox. It lays out files, drops caches, waits until the device
// is idle, runs the tool between two readings, and removes everything.
//
// A [Meter] takes the readings, package tool builds the commands, and package storage
// judges the results.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/storage/run/volume"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Options are the inputs of a run in addition to its plan.
type Options struct {
	run.Options
	Plan     storage.Options
	Targets  []subject.Target
	Meter    Meter
	Files    []probe.File      // copied into every sandbox: the tools
	Programs map[string]string // the path of each tool, on the host and in the sandbox
	Fio      string            // path on the host, for ceilings; "" if there is none
	// Prepare provides a volume with room for the given bytes.
	Prepare func(ctx context.Context, v storage.Volume, bytes int64) (*volume.Volume, error)
	// Run runs a command on the host, outside every target. args[0] may be the
	// probe's path in containers.
	Run func(ctx context.Context, args []string) (subject.Executed, error)
}

// Meter observes the node while a job runs.
type Meter interface {
	// Begin and End read the node and a target just before and just after the job.
	Begin(ctx context.Context, boxes []subject.Sandbox, daemons []int) *snapshot.Edge
	End(ctx context.Context, boxes []subject.Sandbox, daemons []int) *snapshot.Edge
	// Seen returns what happened between two edges, on a block device and on the node.
	Seen(begin, end *snapshot.Edge, device string) record.Observed
	// Rest waits until a block device is idle, for at most the given time, and
	// reports whether it is. "" means all whole disks.
	Rest(ctx context.Context, device string, most time.Duration) bool
	// Drop drops the page cache of the node.
	Drop(ctx context.Context) error
	// Flush writes back dirty pages. It returns how many bytes a device has written
	// since the edge after a job, or -1 if unknown.
	Flush(end *snapshot.Edge, device string) int64
}

type turn = run.Turn[subject.Session]

// Run performs the plan and returns the record and its judgement, see [run.Finish].
func Run(ctx context.Context, o Options) (*record.Record, *storage.Judgement, error) {
	o.Plan.Seed, o.Plan.Rounds = run.Seed(o.Plan.Seed), o.Plan.Enough(o.Plan.Rounds, o.Plan.Comparisons(len(o.Targets)))
	volumes, jobs, err := o.Plan.Resolved()
	if err != nil {
		return nil, nil, err
	}
	r, err := run.Begin[subject.Session](o.Options, "storage", o.Plan, o.Targets)
	s := &schedule{Run: r, options: o, rest: run.Patience{Most: o.Plan.Settle}, jobs: jobs}
	why := ""
	if err == nil {
		why, err = s.all(ctx, volumes)
	}
	return run.Finish(ctx, r, why, err, storage.Judge)
}

type schedule struct {
	*run.Run[subject.Session]
	options Options
	rest    run.Patience // until a device is idle
	jobs    []storage.Job
	kept    bool // the finding that the page cache is not dropped was added
	later   int  // visits on the volumes that follow
}

// all measures the volumes one after another.
func (r *schedule) all(ctx context.Context, volumes []storage.Volume) (why string, err error) {
	opened := false
	for i, v := range volumes {
		pairs := r.options.Plan.Pairs(r.jobs, v.Kind)
		if ctx.Err() != nil || len(pairs) == 0 {
			continue
		}
		r.later = 0
		for _, next := range volumes[i+1:] {
			r.later += len(r.options.Plan.Pairs(r.jobs, next.Kind)) * r.options.Plan.Rounds * len(r.options.Targets)
		}
		why, any, err := r.on(ctx, v, pairs)
		opened = opened || any
		if err != nil || why == run.WhyBudget {
			return why, err
		}
	}
	if !opened && ctx.Err() == nil {
		return "", errors.New("no target could be opened on any volume; the findings say why")
	}
	return run.WhyRounds, nil
}

// on measures everything on one volume. opened reports whether at least one target
// was opened.
func (r *schedule) on(ctx context.Context, v storage.Volume, pairs []storage.Pair) (why string, opened bool, err error) {
	needs, err := r.needs(v, pairs)
	var ready *volume.Volume
	if err == nil {
		ready, err = r.options.Prepare(ctx, v, needs)
	}
	if err != nil {
		if ctx.Err() != nil {
			return "", false, nil
		}
		return "", false, r.absent(v, "", err)
	}
	s := &stage{schedule: r, volume: ready, pairs: pairs, needs: needs, placed: map[string]bool{}, looked: map[string]*record.Place{}}
	err = s.ceiling(ctx, "before")
	if err == nil {
		err = s.open(ctx)
	}
	opened = len(r.Open) > 0
	if err == nil {
		why, err = s.rounds(ctx)
	}
	r.CloseOpen()
	if err == nil && why != run.WhyBudget && opened {
		err = s.ceiling(ctx, "after")
	}
	return why, opened, errors.Join(err, r.LeftBehind("", ready.Close()))
}

// needs returns the bytes that the largest job needs.
func (r *schedule) needs(v storage.Volume, pairs []storage.Pair) (most int64, err error) {
	for _, p := range pairs {
		files, err := tool.Files(p.Job, r.at(p, v.Kind))
		if err != nil {
			return 0, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		most = max(most, total(files), p.Job.Bytes())
	}
	return most, nil
}

// absent records that a volume is unavailable on the named target, or on all targets
// if name is "".
func (r *schedule) absent(v storage.Volume, name string, why error) error {
	targets := []string{name}
	if name == "" {
		targets = targets[:0]
		for _, t := range r.Record.Targets {
			targets = append(targets, t.Name)
		}
	}
	advice := volume.Advice(why)
	for _, t := range targets {
		if err := r.Line(record.Place{Target: t, Volume: v.Name, Mounts: []record.FileSystem{}, Absent: why.Error(), Advice: advice}); err != nil {
			return err
		}
	}
	advice = cmp.Or(advice, "leave the volume out for this target, or see docs/storage.md for its requirements")
	level := map[bool]string{true: "note", false: "error"}[r.options.Plan.Missing == terms.MissingSkip]
	return r.Finding(record.Finding{Code: finding.VolumeAbsent, Level: level, Target: name,
		Message: fmt.Sprintf("nothing was run on %s: %v", v.Name, why), Advice: advice})
}
