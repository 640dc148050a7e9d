// Package run is what the runs of all instruments have in common. A run writes what it
// sees into a record, from the header to the end mark; it opens targets, each with time
// and folders of its own, and closes them on every path; in between it goes through
// rounds, every target once in each and in a fresh order, until there are enough or the
// budget is spent. What one visit of one target does is the instrument's own affair.
package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/record"
)

// Options are what a run needs besides its plan and its targets.
type Options struct {
	RunID  string
	Header record.Header // what the record says of the machine and of tare; the rest is filled in
	// Dirs makes the folders of a target.
	Dirs func(name string) (data, state string, err error)
	// Write puts a line into the stored record. May be nil.
	Write func(line any) error
	// Before are findings from before the run.
	Before []record.Finding
	// After looks at the machine once every session is closed. May be nil.
	After func() []record.Finding
	// Progress is told what is done next. May be nil.
	Progress func(Progress)
	// Drop drops the node's page cache before whatever is timed. May be nil: then it is
	// left as it is.
	Drop func(ctx context.Context) error
	// Node reads the machine's state, after every round that came to its end. May be nil.
	Node func() record.Node
	// Warn is told before a run what it cannot show. May be nil.
	Warn func(text string)
}

// Seed is the seed that a plan asks for, or one by chance where it asks for none.
func Seed(asked uint64) uint64 {
	if asked != 0 {
		return asked
	}
	return rand.Uint64()>>12 | 1 // fits a JSON number everywhere
}

// Session is a target that is open: all that a run has to know of one.
type Session interface {
	// Close removes everything that was made for it.
	Close(ctx context.Context) error
}

// Run is a run under way, of targets whose sessions are S.
type Run[S Session] struct {
	Options
	Began  time.Time
	Record *record.Record // as far as the run came
	Open   []*Target[S]   // those that could be opened

	closers []func() error
	warned  string // what Warn was told last
	now     stage
	visits  int           // measured ones that were done
	done    float64       // what all visits were worth
	spent   time.Duration // in them
}

// Target is one that is open.
type Target[S Session] struct {
	Session S
	Info    record.Target
	Gone    bool // given up

	fruitless int // rounds in a row in which nothing succeeded
}

// Begin writes the header of an experiment's record, the targets, and the findings
// from before. Whatever it returns has to be finished.
func Begin[S Session, T interface{ Info() record.Target }](o Options, experiment string, plan any, targets []T) (*Run[S], error) {
	r := &Run[S]{Options: o, Began: time.Now(), Record: &record.Record{}}
	h := o.Header
	h.Schema, h.RunID, h.Experiment = record.Schema, o.RunID, experiment
	b, err := json.Marshal(plan)
	if err != nil {
		return r, fmt.Errorf("store the plan: %w", err)
	}
	h.Plan = b
	if err := r.Line(h); err != nil {
		return r, err
	}
	for _, t := range targets {
		if err := r.Line(t.Info()); err != nil {
			return r, err
		}
	}
	for _, f := range o.Before {
		if err := r.Finding(f); err != nil {
			return r, err
		}
	}
	return r, nil
}

// Cold drops the node's page cache where that is asked for, and says what was dropped, as
// records have it. Where it cannot be dropped nothing that follows would be cold, and
// what is armed has to be disarmed; so it has when the run was told to stop meanwhile.
func (r *Run[S]) Cold(ctx context.Context) (dropped string, err error) {
	if r.Drop == nil {
		return "", nil
	}
	if err := cmp.Or(r.Drop(ctx), ctx.Err()); err != nil {
		return "", err
	}
	return record.DroppedNode, nil
}

// Line puts a line into Record and stores it.
func (r *Run[S]) Line(line any) error {
	r.Record.Add(line)
	return r.store(line)
}

func (r *Run[S]) store(line any) error {
	if r.Write == nil {
		return nil
	}
	return r.Write(line)
}

// Finding records a finding.
func (r *Run[S]) Finding(f record.Finding) error {
	return r.Line(f)
}

// GiveUp takes a target out of the run.
func (r *Run[S]) GiveUp(t *Target[S], f record.Finding) error {
	t.Gone = true
	f.Code, f.Level, f.Target = finding.GivenUp, "error", t.Info.Name
	f.Advice = "see its failed operations for the cause; other targets went on"
	return r.Finding(f)
}

// FailedRounds is how many rounds in a row may pass without one success before a
// target is given up: with a time-out of a minute each, a runtime that hangs would
// otherwise eat the whole budget of the others.
const FailedRounds = 2

// Hopeless notes whether anything succeeded on the target in a round, and tells
// whether that makes it one to give up.
func (t *Target[S]) Hopeless(succeeded bool) bool {
	t.fruitless++
	if succeeded {
		t.fruitless = 0
	}
	return t.fruitless >= FailedRounds
}

// GivenUp are the names of the targets that were given up.
func (r *Run[S]) GivenUp() (names []string) {
	for _, t := range r.Open {
		if t.Gone {
			names = append(names, t.Info.Name)
		}
	}
	return names
}

// Judgement is what is made of a record.
type Judgement interface {
	Result() (failed, total int, findings []record.Finding)
}

// Finish closes everything, has the whole judged once, and writes the findings and the
// end mark. It returns the record, which is as far as the run came, the judgement, the
// zero one where there can be none, and cause with what kept the record from being
// written: ctx's end is no error (the record's End says "interrupted"), and neither is
// what failed in the judgement's eyes.
func Finish[J Judgement, S Session](ctx context.Context, r *Run[S], why string, cause error, judge func(*record.Record) (J, error)) (*record.Record, J, error) {
	r.close()
	end := record.End{Type: record.TypeEnd, Status: "done", Why: why, Batches: len(r.Record.Batches), Elapsed: time.Since(r.Began).Nanoseconds()}
	switch {
	case cause != nil:
		end.Status, end.Why = "failed", cause.Error()
	case ctx.Err() != nil:
		end.Status, end.Why = "interrupted", ""
	}
	r.Record.End = &end
	j, err := judge(r.Record)
	if err != nil {
		return r.Record, j, errors.Join(cause, err)
	}
	written := r.Record.Findings
	end.Failures, _, r.Record.Findings = j.Result()
	for _, f := range r.Record.Findings {
		if slices.Contains(written, f) {
			continue // it is in the file already
		}
		if err := r.store(f); err != nil {
			return r.Record, j, Together(cause, err)
		}
	}
	return r.Record, j, Together(cause, r.store(end))
}

// Together joins two errors. A record that cannot be written says the same
// each time, and is told of once.
func Together(cause, err error) error {
	if errors.Is(cause, err) {
		return cause
	}
	return errors.Join(cause, err)
}
