// Package storage weighs what I/O a runtime loses: every job on every target, on
// every volume, past the page cache and through it.
//
// It schedules and nothing else. Volumes are gone through one after the other.
// On each, every round visits every target once for every job and cache, in a
// fresh random order, so that a device that drifts does so under all of them. A
// visit is a sandbox of its own: files are laid out, caches dropped, the device
// comes to rest; then the tool runs between two readings; then everything is
// removed. What is read is decided by a [Meter], which command a job is by
// package tool, and what the figures are worth by package judge.
package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/storage/run/volume"
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Options are what a run needs besides its plan.
type Options struct {
	run.Options
	Plan     plan.Storage
	Meter    Meter
	Files    []probe.File      // carried into every sandbox: the tools
	Programs map[string]string // the path inside of each tool
	OnHost   map[string]string // the path on the host of each tool
	// Prepare makes a volume ready that holds so many bytes.
	Prepare func(ctx context.Context, v plan.Volume, bytes int64) (*volume.Volume, error)
	// Run runs a command on the host, without a target. args[0] may be the
	// probe's path in containers.
	Run func(ctx context.Context, args []string) (subject.Executed, error)
	// Progress is told what is done next. May be nil.
	Progress func(Progress)
}

// Progress is where a run is.
type Progress struct {
	Round, Rounds              int // the round from 0
	Target, Volume, Job, Cache string
	Step                       string // "laying out files", "running", …
	Elapsed, Left              time.Duration
}

// Meter sees what happens on the node while a job runs.
type Meter interface {
	// Begin and End read the node and a target just before and just after.
	Begin(ctx context.Context, boxes []subject.Sandbox, staff []subject.Process) *snapshot.Edge
	End(ctx context.Context, boxes []subject.Sandbox, staff []subject.Process) *snapshot.Edge
	// Seen is what happened between two edges, on a block device and on the node.
	Seen(begin, end *snapshot.Edge, device string) record.Seen
	// Rest waits until a block device is at rest, at most for a time, and tells
	// whether it is; "" stands for all whole disks.
	Rest(ctx context.Context, device string, most time.Duration) bool
	// Drop drops all page cache of the node.
	Drop() error
	// Flush writes back what is dirty, and tells how many bytes a device has
	// written since the edge after a job; -1 where that is not known.
	Flush(end *snapshot.Edge, device string) int64
}

// Run performs the plan and returns the record of it, which is as far as the
// run came. The error says what kept it from going on: ctx's end is not one
// (the record's End says "interrupted"), and cells that failed are not either.
func Run(ctx context.Context, o Options) (*record.Record, error) {
	o.Plan.Seed = run.Seed(o.Plan.Seed)
	volumes, jobs, err := o.Plan.Resolved()
	if err != nil {
		return nil, err
	}
	c, err := run.Begin(o.Options, "storage", o.Plan)
	if err != nil {
		return c.Record, err
	}
	r := &schedule{Run: c, Options: o, volumes: volumes, jobs: jobs, told: map[string]bool{}}
	for _, v := range volumes {
		r.work.all += len(r.pairs(v)) * o.Plan.Rounds * len(o.Targets)
	}
	why, err := r.all(ctx)
	c.Close()
	return c.Record, c.Finish(ctx, why, err, func(rec *record.Record) ([]record.Finding, int, error) {
		j, err := judge.StorageOf(rec)
		if err != nil {
			return nil, 0, err
		}
		return j.Findings, j.Failed, nil
	})
}

type schedule struct {
	*run.Run
	Options Options
	volumes []plan.Volume
	jobs    []plan.Job
	told    map[string]bool // findings that are told once
	work    work            // for the estimate
}

// work counts cells.
type work struct{ done, all int }

// pair is a job with a cache.
type pair struct {
	job   plan.Job
	cache string
}

// pairs are what is run on a volume, in the order of the plan.
func (r *schedule) pairs(v plan.Volume) []pair {
	var all []pair
	for _, j := range r.jobs {
		for _, cache := range r.Options.Plan.Cache {
			if j.Takes(v.Kind, cache) {
				all = append(all, pair{j, cache})
			}
		}
	}
	return all
}

// all goes through the volumes.
func (r *schedule) all(ctx context.Context) (why string, err error) {
	opened := false
	for _, v := range r.volumes {
		pairs := r.pairs(v)
		if ctx.Err() != nil || len(pairs) == 0 {
			continue
		}
		spent, any, err := r.on(ctx, v, pairs)
		opened = opened || any
		if err != nil {
			return "", err
		}
		if spent {
			return "budget spent", nil
		}
	}
	if !opened && ctx.Err() == nil {
		return "", errors.New("no target could be opened on any volume; the findings say why")
	}
	return "rounds", nil
}

// on does everything on one volume. spent says that the budget is; opened that
// at least one target could be opened.
func (r *schedule) on(ctx context.Context, v plan.Volume, pairs []pair) (spent, opened bool, err error) {
	ready, err := r.prepare(ctx, v, pairs)
	if err != nil {
		if ctx.Err() != nil {
			return false, false, nil
		}
		r.work.done += len(pairs) * r.Options.Plan.Rounds * len(r.Options.Targets)
		return false, false, r.absent(v, "", err)
	}
	s := &stage{schedule: r, volume: ready, pairs: pairs, placed: map[string]bool{}}
	err = s.ceiling(ctx, "before")
	if err == nil {
		err = s.open(ctx)
	}
	opened = len(r.Open) > 0
	if err == nil {
		spent, err = s.rounds(ctx)
	}
	r.CloseOpen()
	if err == nil && !spent && opened {
		err = s.ceiling(ctx, "after")
	}
	if cut := ready.Close(); cut != nil {
		err = errors.Join(err, r.Finding(record.Finding{Code: finding.LeftBehind, Level: "error",
			Message: "could not remove everything: " + cut.Error(), Advice: "run: tare clean"}))
	}
	return spent, opened, err
}

func (r *schedule) prepare(ctx context.Context, v plan.Volume, pairs []pair) (*volume.Volume, error) {
	most := int64(0)
	for _, p := range pairs {
		n, err := needs(p.job, r.at(p, v.Kind, ""))
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		most = max(most, n)
	}
	return r.Options.Prepare(ctx, v, most)
}

// absent records that a volume cannot be had, on a target or, without one, on
// any.
func (r *schedule) absent(v plan.Volume, name string, why error) error {
	targets := []string{name}
	if name == "" {
		targets = targets[:0]
		for _, t := range r.Options.Targets {
			targets = append(targets, t.Info().Name)
		}
	}
	advice := volume.Advice(why)
	for _, t := range targets {
		if err := r.place(record.Place{Target: t, Volume: v.Name, Mounts: []record.FileSystem{}, Absent: why.Error(), Advice: advice}); err != nil {
			return err
		}
	}
	if advice == "" {
		advice = "leave the volume out for this target, or see docs/storage.md for what it needs"
	}
	level := "error"
	if r.Options.Plan.Missing == plan.MissingSkip {
		level = "note"
	}
	return r.Finding(record.Finding{Code: finding.VolumeAbsent, Level: level, Target: name,
		Message: fmt.Sprintf("nothing was run on %s: %v", v.Name, why), Advice: advice})
}

func (r *schedule) place(x record.Place) error {
	x.Type = record.TypePlace
	r.Record.Places = append(r.Record.Places, x)
	return r.Line(x)
}

func (r *schedule) cell(x record.Cell) error {
	x.Type = record.TypeCell
	r.Record.Cells = append(r.Record.Cells, x)
	return r.Line(x)
}

// once records a finding the first time only.
func (r *schedule) once(f record.Finding) error {
	key := f.Code + "\x00" + f.Target
	if r.told[key] {
		return nil
	}
	r.told[key] = true
	return r.Finding(f)
}

func (r *schedule) tell(p Progress) {
	if r.Options.Progress == nil {
		return
	}
	p.Rounds, p.Elapsed = r.Options.Plan.Rounds, time.Since(r.Began)
	if r.work.done > 0 {
		p.Left = time.Duration(float64(p.Elapsed) / float64(r.work.done) * float64(r.work.all-r.work.done))
		p.Left = min(p.Left, max(r.Options.Plan.Budget-p.Elapsed, 0))
	}
	r.Options.Progress(p)
}
