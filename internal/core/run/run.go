// Package course is what the runs of all experiments have in common: the record
// begins with the plan, the machine and the targets; targets are opened, each
// with time and folders of its own; whatever happens they are closed; and the
// record ends with findings and an end mark.
package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Options are what a run needs besides its plan.
type Options struct {
	Targets []subject.Target
	RunID   string
	Header  record.Header // what the record says of the machine and of tare; the rest is filled in
	// Dirs makes the folders of a target.
	Dirs func(name string) (data, state string, err error)
	// Write puts a line into the stored record. May be nil.
	Write func(line any) error
	// Before are findings from before the run.
	Before []record.Finding
	// After looks at the machine once every session is closed. May be nil.
	After func() []record.Finding
}

// Seed is the seed that a plan asks for, or one by chance where it asks for none.
func Seed(asked uint64) uint64 {
	if asked != 0 {
		return asked
	}
	return rand.Uint64()>>12 | 1 // fits a JSON number everywhere
}

// Run is a run under way.
type Run struct {
	Options
	Began  time.Time
	Record *record.Record // as far as the run came
	Open   []*Weighed     // the targets that could be opened
}

// Weighed is a target that is open.
type Weighed struct {
	subject.Session
	Info record.Target
	Gone bool // given up
}

// Begin writes the header of an experiment's record, the targets, and the
// findings from before.
func Begin(o Options, experiment string, plan any) (*Run, error) {
	c := &Run{Options: o, Began: time.Now(), Record: &record.Record{}}
	h := o.Header
	h.Schema, h.RunID, h.Experiment = record.Schema, o.RunID, experiment
	b, err := json.Marshal(plan)
	if err != nil {
		return c, fmt.Errorf("store the plan: %w", err)
	}
	h.Plan = b
	c.Record.Header = h
	if err := c.Line(h); err != nil {
		return c, err
	}
	for _, t := range o.Targets {
		info := t.Info()
		info.Type = record.TypeTarget
		c.Record.Targets = append(c.Record.Targets, info)
		if err := c.Line(info); err != nil {
			return c, err
		}
	}
	for _, f := range o.Before {
		if err := c.Finding(f); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Line stores a line. What it says has to be put into Record as well.
func (c *Run) Line(line any) error {
	if c.Write == nil {
		return nil
	}
	return c.Write(line)
}

// Finding records a finding.
func (c *Run) Finding(f record.Finding) error {
	f.Type = record.TypeFinding
	c.Record.Findings = append(c.Record.Findings, f)
	return c.Line(f)
}

// GiveUp takes a target out of the run.
func (c *Run) GiveUp(w *Weighed, f record.Finding) error {
	w.Gone = true
	f.Code, f.Level, f.Target = finding.GivenUp, "error", w.Info.Name
	f.Advice = "see its failed operations for the cause; other targets went on"
	return c.Finding(f)
}

// opening bounds what a target may take to get ready, and closing what it may
// take to remove everything: one whose engine hangs must not keep the others
// from theirs.
const (
	opening = 3 * time.Minute
	closing = time.Minute
)

// OpenAll prepares every target, in an environment that is complete but for its
// folders. One that cannot be opened is left out; the others go on. It is an
// error when none is left.
func (c *Run) OpenAll(ctx context.Context, env subject.Env) error {
	for _, t := range c.Targets {
		if ctx.Err() != nil {
			return nil
		}
		err := c.OpenOne(ctx, t, env)
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return nil // that is why it did not open
		}
		if err := c.NotOpened(t, err); err != nil {
			return err
		}
	}
	if len(c.Open) == 0 && ctx.Err() == nil {
		return errors.New("no target could be opened; the findings say why")
	}
	return nil
}

// OpenOne prepares one target, in an environment that is complete but for its
// folders.
func (c *Run) OpenOne(ctx context.Context, t subject.Target, env subject.Env) error {
	info := t.Info()
	var err error
	if env.Dir, env.StateDir, err = c.Dirs(info.Name); err != nil {
		return err
	}
	env.RunID = c.RunID
	bounded, cancel := context.WithTimeout(ctx, opening)
	defer cancel()
	s, err := t.Open(bounded, env)
	if err == nil {
		c.Open = append(c.Open, &Weighed{Session: s, Info: info})
	}
	return err
}

// NotOpened records that a target could not be opened.
func (c *Run) NotOpened(t subject.Target, err error) error {
	return c.Finding(record.Finding{Code: finding.OpenFailed, Level: "error", Target: t.Info().Name,
		Message: err.Error(), Advice: "other targets went on; tare doctor says what can be weighed here"})
}

// Close closes every session, and looks at the machine then.
func (c *Run) Close() {
	c.CloseOpen()
	if c.After != nil {
		for _, f := range c.After() {
			_ = c.Finding(f) // a record that cannot be written is told by Finish
		}
	}
}

// CloseOpen closes every session, each with time of its own: the run may have
// been told to stop.
func (c *Run) CloseOpen() {
	for _, w := range c.Open {
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		err := w.Close(ctx)
		cancel()
		if err != nil {
			// A record that cannot be written is told by Finish.
			_ = c.Finding(record.Finding{Code: finding.LeftBehind, Level: "error", Target: w.Info.Name,
				Message: "could not remove everything: " + err.Error(), Advice: "run: tare clean"})
		}
	}
	c.Open = nil
}

// Finish has the whole judged, writes the findings and the end mark. The error
// is cause, and what kept the record from being written.
func (c *Run) Finish(ctx context.Context, why string, cause error, judged func(*record.Record) (findings []record.Finding, failures int, err error)) error {
	end := record.End{Type: record.TypeEnd, Status: "done", Why: why, Batches: len(c.Record.Batches), Elapsed: time.Since(c.Began).Nanoseconds()}
	switch {
	case cause != nil:
		end.Status, end.Why = "failed", cause.Error()
	case ctx.Err() != nil:
		end.Status, end.Why = "interrupted", ""
	}
	c.Record.End = &end
	findings, failures, err := judged(c.Record)
	if err != nil {
		return errors.Join(cause, err)
	}
	end.Failures = failures
	c.Record.Findings = findings
	for _, f := range findings {
		if slices.Contains(finding.FromRun, f.Code) {
			continue // it is in the file already
		}
		if err := c.Line(f); err != nil {
			return Together(cause, err)
		}
	}
	return Together(cause, c.Line(end))
}

// Together joins two errors. A record that cannot be written says the same
// each time, and is told of once.
func Together(cause, err error) error {
	if errors.Is(cause, err) {
		return cause
	}
	return errors.Join(cause, err)
}
