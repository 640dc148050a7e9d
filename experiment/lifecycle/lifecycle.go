// Package lifecycle weighs what create, start, stop, rm and run cost on each
// target, and where there are pods runp, stopp and rmp, one at a time or many
// at once.
//
// It schedules and nothing else: targets are prepared, warmed up, and visited
// once in every round in a fresh random order, so that whatever drifts hits
// all of them alike; everything that happens goes into the record at once, and
// what can be said of it is said by package judge.
package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tare-bench/tare/judge"
	"github.com/tare-bench/tare/plan"
	"github.com/tare-bench/tare/record"
	"github.com/tare-bench/tare/target"
)

// Options are what a run needs besides its plan.
type Options struct {
	Plan    plan.Lifecycle
	Targets []target.Target
	RunID   string
	Header  record.Header // what the record says of the machine and of tare; the rest is filled in
	// Dirs makes the folders of a target.
	Dirs func(name string) (data, state string, err error)
	// Write puts a line into the stored record. May be nil.
	Write func(line any) error
	// Node reads the machine's state between rounds. May be nil.
	Node func() record.Node
	// Before are findings from before the run.
	Before []record.Finding
	// After looks at the machine once every session is closed. May be nil.
	After func() []record.Finding
	// Progress is told before each batch. May be nil.
	Progress func(Progress)
}

// Progress is where a run is.
type Progress struct {
	Phase   record.Phase
	Lanes   int
	Round   int // from 0
	Rounds  int // as planned; more may follow for the precision
	Target  string
	Op      target.Op
	Elapsed time.Duration
	Left    time.Duration // an estimate; 0 while there is none
}

// Run performs the plan and returns the record of it, which is as far as the
// run came. The error says what kept it from going on: ctx's end is not one
// (the record's End says "interrupted"), and failed operations are not either.
func Run(ctx context.Context, o Options) (*record.Record, error) {
	r := &run{Options: o, began: time.Now(), rec: &record.Record{}}
	if r.Plan.Seed == 0 {
		r.Plan.Seed = rand.Uint64()>>12 | 1 // fits a JSON number everywhere
	}
	if err := r.header(); err != nil {
		return r.rec, err
	}
	err := r.open(ctx)
	why := ""
	if err == nil && len(r.sessions) == 0 && ctx.Err() == nil {
		err = errors.New("no target could be opened; the findings say why")
	}
	if err == nil && ctx.Err() == nil {
		why, err = r.sweep(ctx)
	}
	r.close()
	return r.rec, r.finish(ctx, why, err)
}

type run struct {
	Options
	began    time.Time
	rec      *record.Record
	sessions []*weighed
	done     int           // rounds finished, warm-up included
	spent    time.Duration // in them
}

// weighed is a target that is open.
type weighed struct {
	target.Session
	info   record.Target
	barren int  // rounds in a row in which nothing succeeded
	gone   bool // given up
}

func (r *run) header() error {
	h := r.Header
	h.Schema, h.RunID, h.Experiment = record.Schema, r.RunID, "lifecycle"
	b, err := json.Marshal(r.Plan)
	if err != nil {
		return fmt.Errorf("store the plan: %w", err)
	}
	h.Plan = b
	r.rec.Header = h
	if err := r.write(h); err != nil {
		return err
	}
	for _, t := range r.Targets {
		info := t.Info()
		info.Type = record.TypeTarget
		r.rec.Targets = append(r.rec.Targets, info)
		if err := r.write(info); err != nil {
			return err
		}
	}
	for _, f := range r.Before {
		if err := r.finding(f); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) write(line any) error {
	if r.Write == nil {
		return nil
	}
	return r.Write(line)
}

func (r *run) finding(f record.Finding) error {
	f.Type = record.TypeFinding
	r.rec.Findings = append(r.rec.Findings, f)
	return r.write(f)
}

// open prepares every target. One that cannot be opened is left out; the
// others go on.
func (r *run) open(ctx context.Context) error {
	for _, t := range r.Targets {
		if ctx.Err() != nil {
			return nil
		}
		info := t.Info()
		data, state, err := r.Dirs(info.Name)
		var s target.Session
		if err == nil {
			bounded, cancel := context.WithTimeout(ctx, opening)
			s, err = t.Open(bounded, target.Env{
				RunID: r.RunID, Dir: data, StateDir: state, Lanes: slices.Max(r.Plan.Lanes),
				Timeout: r.Plan.Timeout, Limits: r.Plan.Limits,
			})
			cancel()
		}
		if err == nil {
			r.sessions = append(r.sessions, &weighed{Session: s, info: info})
			continue
		}
		if ctx.Err() != nil {
			return nil // that is why it did not open
		}
		if err := r.finding(record.Finding{Code: judge.FoundOpenFailed, Level: "error", Target: info.Name,
			Message: err.Error(), Advice: "other targets went on; tare doctor says what can be weighed here"}); err != nil {
			return err
		}
	}
	return nil
}

// sweep goes through the numbers of lanes.
func (r *run) sweep(ctx context.Context) (why string, err error) {
	for _, lanes := range r.Plan.Lanes {
		for i := range r.Plan.Warmup {
			if r.over() {
				break // measure says so
			}
			if err := r.round(ctx, record.PhaseWarmup, lanes, i); err != nil || ctx.Err() != nil {
				return "", err
			}
		}
		if why, err = r.measure(ctx, lanes); err != nil || ctx.Err() != nil {
			return "", err
		}
	}
	return why, nil
}

// measure does rounds until the plan's number is reached and, where a
// precision is asked for, until it is reached or the budget is spent.
func (r *run) measure(ctx context.Context, lanes int) (why string, err error) {
	for i := 0; ; i++ {
		over := r.over()
		switch {
		case over && i < r.Plan.Rounds:
			level := "warning"
			if i == 0 {
				level = "error" // nothing was weighed
			}
			return "budget spent", r.finding(record.Finding{Code: judge.FoundBudget, Level: level, Lanes: lanes,
				Message: fmt.Sprintf("the budget of %v was spent after %d of %d rounds", r.Plan.Budget, i, r.Plan.Rounds),
				Advice:  "raise --budget, or use fewer --rounds, targets or lanes"})
		case i >= r.Plan.Rounds && r.Plan.Precision == 0:
			return "rounds", nil
		case i >= r.Plan.Rounds:
			worst, where, err := r.precision(lanes)
			if err != nil || worst <= r.Plan.Precision {
				return "precision reached", err
			}
			if over {
				return "budget spent", r.finding(record.Finding{Code: judge.FoundNotPrecise, Level: "warning", Lanes: lanes,
					Message: fmt.Sprintf("±%.1f %% was not reached in %v (%d rounds): %s", 100*r.Plan.Precision, r.Plan.Budget, i, widest(worst, where)),
					Advice:  "raise --budget, or ask for less: on a noisy machine an interval shrinks with the square root of the rounds"})
			}
		}
		if err := r.round(ctx, record.PhaseMeasure, lanes, i); err != nil || ctx.Err() != nil {
			return "", err
		}
		if !slices.ContainsFunc(r.sessions, func(w *weighed) bool { return !w.gone }) {
			return "every target was given up", nil
		}
	}
}

// over tells that no new round may be begun.
func (r *run) over() bool { return time.Since(r.began) > r.Plan.Budget }

// precision is the widest interval of the targets that still take part: one
// that was given up will never get narrower.
func (r *run) precision(lanes int) (worst float64, where string, err error) {
	l, err := judge.Of(r.rec)
	if err != nil {
		return 0, "", err
	}
	for i := range l.Tables {
		if l.Tables[i].Lanes == lanes {
			worst, where = l.Tables[i].Precision(r.gone()...)
		}
	}
	return worst, where, nil
}

func widest(worst float64, where string) string {
	if math.IsInf(worst, 1) {
		return "there is no interval yet of " + where
	}
	return fmt.Sprintf("the widest interval is ±%.1f %%, of %s", 100*worst, where)
}

func (r *run) gone() (names []string) {
	for _, w := range r.sessions {
		if w.gone {
			names = append(names, w.info.Name)
		}
	}
	return names
}

// round visits every target once, in an order that the seed, the phase and the
// round's number decide.
func (r *run) round(ctx context.Context, phase record.Phase, lanes, number int) error {
	begin := time.Now()
	salt := uint64(lanes)<<33 | uint64(number)
	if phase == record.PhaseWarmup {
		salt |= 1 << 32
	}
	order := rand.New(rand.NewPCG(r.Plan.Seed, salt)).Perm(len(r.sessions))
	for place, i := range order {
		w := r.sessions[i]
		if w.gone {
			continue
		}
		v := visit{run: r, w: w, phase: phase, lanes: lanes, round: number, order: place}
		if err := v.do(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	r.done++
	r.spent += time.Since(begin)
	if r.Node == nil {
		return nil
	}
	n := r.Node()
	n.Type, n.Round, n.Phase, n.Lanes = record.TypeNode, number, phase, lanes
	r.rec.Nodes = append(r.rec.Nodes, n)
	return r.write(n)
}

// opening bounds what a target may take to get ready, and closing what it may
// take to remove everything: one whose engine hangs must not keep the others
// from theirs.
const (
	opening = 3 * time.Minute
	closing = time.Minute
)

// close closes every session, each with time of its own: the run may have been
// told to stop.
func (r *run) close() {
	for _, w := range r.sessions {
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		err := w.Close(ctx)
		cancel()
		if err != nil {
			// A record that cannot be written is told by finish.
			_ = r.finding(record.Finding{Code: judge.FoundLeftBehind, Level: "error", Target: w.info.Name,
				Message: "could not remove everything: " + err.Error(), Advice: "run: tare clean"})
		}
	}
	if r.After != nil {
		for _, f := range r.After() {
			_ = r.finding(f)
		}
	}
}

// finish judges the whole, writes the findings and the end mark.
func (r *run) finish(ctx context.Context, why string, cause error) error {
	end := record.End{Type: record.TypeEnd, Status: "done", Why: why, Batches: len(r.rec.Batches), Elapsed: time.Since(r.began).Nanoseconds()}
	switch {
	case cause != nil:
		end.Status, end.Why = "failed", cause.Error()
	case ctx.Err() != nil:
		end.Status, end.Why = "interrupted", ""
	}
	r.rec.End = &end
	l, err := judge.Of(r.rec)
	if err != nil {
		return errors.Join(cause, err)
	}
	end.Failures = l.Failed
	r.rec.Findings = l.Findings
	for _, f := range l.Findings {
		if slices.Contains(judge.FromExperiment, f.Code) {
			continue // it is in the file already
		}
		if err := r.write(f); err != nil {
			return together(cause, err)
		}
	}
	return together(cause, r.write(end))
}

// together joins two errors. A record that cannot be written says the same
// each time, and is told of once.
func together(cause, err error) error {
	if errors.Is(cause, err) {
		return cause
	}
	return errors.Join(cause, err)
}
