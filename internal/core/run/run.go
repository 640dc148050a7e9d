// Package run has the common part of the runs of all instruments. A run opens targets, visits
// every target once per round in random order, and closes the targets on every path. It ends
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

// Options are the inputs of a run without its plan and its targets. Functions other than Dirs
// may be nil.
type Options struct {
	RunID  string
	Header record.Header // the machine and tare; the run fills in the rest
	// Dirs makes the folders of a target.
	Dirs func(name string) (data, state string, err error)
	// Write writes a line to the stored record.
	Write func(line any) error
	// Before are findings from before the run.
	Before []record.Finding
	// After returns findings about the machine after all sessions are closed.
	After func() []record.Finding
	// Progress reports the next step.
	Progress func(Progress)
	// Drop drops the node's page cache before each timed operation.
	Drop func(ctx context.Context) error
	// Node reads the machine's state after every complete round.
	Node func() record.Node
	// Warn reports limitations before a run.
	Warn func(text string)
}

// Seed returns the requested seed, or a random one for 0.
func Seed(asked uint64) uint64 {
	if asked != 0 {
		return asked
	}
	return rand.Uint64()>>12 | 1 // fits a JSON number everywhere
}

// Session is an open target.
type Session interface {
	// Close removes everything that was made for it.
	Close(ctx context.Context) error
}

// Run is a run of targets with sessions of type S.
type Run[S Session] struct {
	Options
	Began  time.Time
	Record *record.Record // so far
	Open   []*Target[S]

	closers []func() error
	warned  string // the last text to Warn
	now     stage
	visits  int           // measured visits done
	done    float64       // weight of all visits done
	spent   time.Duration // in those visits
}

// Target is an open target.
type Target[S Session] struct {
	Session S
	Info    record.Target
	Gone    bool // given up

	fruitless int // rounds in a row without a success
}

// Begin writes the header of a record, the targets, and the findings from before. Call Finish
// for the run even after an error.
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

// Cold drops the node's page cache if the run has Drop, and returns the word for it in
// records. After an error the operation would not be cold, and the caller must disarm it. An
// interrupted run is an error too.
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

// GiveUp takes a target out of the run.
func (r *Run[S]) GiveUp(t *Target[S], f record.Finding) error {
	t.Gone = true
	f.Code, f.Level, f.Target = finding.GivenUp, "error", t.Info.Name
	f.Advice = "see its failed operations for the cause; other targets went on"
	return r.Finding(f)
}

// FailedRounds is how many rounds in a row without a success make a target be given up.
// Otherwise a runtime that hangs would use up the budget with time-outs.
const FailedRounds = 2

// Hopeless counts a round of the target, and reports whether to give the target up.
func (t *Target[S]) Hopeless(succeeded bool) bool {
	t.fruitless++
	if succeeded {
		t.fruitless = 0
	}
	return t.fruitless >= FailedRounds
}

// GivenUp returns the names of the targets that were given up.
func (r *Run[S]) GivenUp() (names []string) {
	for _, t := range r.Open {
		if t.Gone {
			names = append(names, t.Info.Name)
		}
	}
	return names
}

// Judgement is the judgement of a record.
type Judgement interface {
	Result() (failed, total int, findings []record.Finding)
}

// Finish closes everything, judges the record, and writes the findings and the end mark. It
// returns the record, the judgement or its zero value, and cause joined with errors of writing
// the record. The end of ctx is not an error: the record's End is "interrupted". Nor are
// failed operations.
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

// Together joins two errors, but not err to a cause that has it already: the writer of a
// record returns the same error each time.
func Together(cause, err error) error {
	if errors.Is(cause, err) {
		return cause
	}
	return errors.Join(cause, err)
}
