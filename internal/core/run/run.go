// Package run implements the common part of the runs of all instruments. A run opens targets,
// visits every target once per round in random order, and always closes the targets. It ends
// after enough rounds or when the budget is spent. It writes everything to a record, from the
// header to the end mark. The instrument defines a visit.
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

// Options are the inputs of a run other than its plan and its targets. Functions other than Dirs
// may be nil.
type Options struct {
	RunID  string
	Header record.Header // machine and tare version; the run fills in the rest
	// Dirs creates the directories of a target.
	Dirs func(name string) (data, state string, err error)
	// Write writes a line to the stored record.
	Write func(line any) error
	// Before are findings made before the run.
	Before []record.Finding
	// After returns findings about the machine after all sessions are closed.
	After func() []record.Finding
	// Progress is called before each step.
	Progress func(Progress)
	// Drop drops the node's page cache before each timed operation.
	Drop func(ctx context.Context) error
	// Node reads the state of the machine after every complete round.
	Node func() record.Node
	// Warn reports limitations at the start of a run.
	Warn func(text string)
}

// Seed returns the requested seed, or a random one for 0.
func Seed(asked uint64) uint64 {
	return cmp.Or(asked, rand.Uint64()>>12|1) // a JSON number represents it exactly
}

// Session is an open target.
type Session interface {
	// Close removes everything that was created for the session.
	Close(ctx context.Context) error
}

// Run is a run of targets with sessions of type S.
type Run[S Session] struct {
	Options
	Began  time.Time
	Record *record.Record // lines written so far
	Open   []*Target[S]

	closers []func() error
	warned  string // last text passed to Warn
	now     stage
	visits  int           // number of measured visits
	done    float64       // weight of all visits
	spent   time.Duration // time spent in all visits
}

// Target is an open target.
type Target[S Session] struct {
	Session S
	Info    record.Target
	Gone    bool // given up

	fruitless int // consecutive rounds without a success
}

// Begin writes the record's header, the targets, and the findings made before the run. The caller
// must call Finish even after an error.
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

// Cold drops the node's page cache if the run has Drop, and returns the value of Dropped for
// records. After an error, including an interruption, the caller must disarm the operation:
// the page cache may still be warm.
func (r *Run[S]) Cold(ctx context.Context) (dropped string, err error) {
	if r.Drop == nil {
		return "", nil
	}
	if err := cmp.Or(r.Drop(ctx), ctx.Err()); err != nil {
		return "", err
	}
	return record.DroppedNode, nil
}

// Line adds a line to Record and writes it.
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

// GiveUp excludes a target from the rest of the run.
func (r *Run[S]) GiveUp(t *Target[S], f record.Finding) error {
	t.Gone = true
	f.Code, f.Level, f.Target = finding.GivenUp, "error", t.Info.Name
	f.Advice = "see its failed operations for the cause; the run continued with the other targets"
	return r.Finding(f)
}

// FailedRounds is the number of consecutive rounds without a success after which a target is given
// up. Otherwise a runtime that hangs would use up the budget with timeouts.
const FailedRounds = 2

// Hopeless counts a round of the target and reports whether to give up the target.
func (t *Target[S]) Hopeless(succeeded bool) bool {
	t.fruitless++
	if succeeded {
		t.fruitless = 0
	}
	return t.fruitless >= FailedRounds
}

// GivenUp returns the names of targets that were given up.
func (r *Run[S]) GivenUp() (names []string) {
	for _, t := range r.Open {
		if t.Gone {
			names = append(names, t.Info.Name)
		}
	}
	return names
}

// Judgement is the evaluation of a record.
type Judgement interface {
	Result() (failed, total int, findings []record.Finding)
}

// Finish closes everything, judges the record, and writes the findings and the end mark. It
// returns the record, the judgement or its zero value, and an error. The error joins cause with
// errors of writing the record. Failed operations are not errors, and neither is a canceled ctx:
// the record's End is then "interrupted".
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
			continue // already written
		}
		if err := r.store(f); err != nil {
			return r.Record, j, Together(cause, err)
		}
	}
	return r.Record, j, Together(cause, r.store(end))
}

// Together joins two errors unless cause already contains err: the writer of a record returns the
// same error every time.
func Together(cause, err error) error {
	if errors.Is(cause, err) {
		return cause
	}
	return errors.Join(cause, err)
}
