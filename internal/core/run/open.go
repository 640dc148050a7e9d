package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Opener opens the target that is the i-th of the record's, in folders of its own.
type Opener[S Session] func(ctx context.Context, i int, runID, dir, stateDir string) (S, error)

// opening bounds what a target may take to get ready, and closing what it may
// take to remove everything: one whose engine hangs must not keep the others
// from theirs.
const (
	opening = 5 * time.Minute
	closing = 2 * time.Minute
)

// OpenAll opens every target. One that cannot be opened is told of and left out; the
// others go on. It is an error when none is left.
func (r *Run[S]) OpenAll(ctx context.Context, open Opener[S]) error {
	if err := r.OpenEach(ctx, open, r.NotOpened); err != nil {
		return err
	}
	if len(r.Open) == 0 && ctx.Err() == nil {
		return errors.New("no target could be opened; the findings say why")
	}
	return nil
}

// OpenEach opens every target, and says of each that cannot be opened why.
func (r *Run[S]) OpenEach(ctx context.Context, open Opener[S], not func(name string, why error) error) error {
	for i := range r.Record.Targets {
		if ctx.Err() != nil {
			return nil
		}
		err := r.openOne(ctx, i, open)
		if err == nil || ctx.Err() != nil { // which is why it did not open
			continue
		}
		if err := not(r.Record.Targets[i].Name, err); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run[S]) openOne(ctx context.Context, i int, open Opener[S]) error {
	info := r.Record.Targets[i]
	dir, stateDir, err := r.Dirs(info.Name)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, opening)
	defer cancel()
	s, err := open(bounded, i, r.RunID, dir, stateDir)
	if err == nil {
		r.Open = append(r.Open, &Target[S]{Session: s, Info: info})
	}
	var left interface {
		error
		Left() // something is still on the engine
	}
	if errors.As(err, &left) {
		return errors.Join(err, r.LeftBehind(info.Name, left))
	}
	return err
}

// NotOpened records that a target could not be opened.
func (r *Run[S]) NotOpened(name string, why error) error {
	return r.Finding(record.Finding{Code: finding.OpenFailed, Level: "error", Target: name,
		Message: why.Error(), Advice: "other targets went on; tare doctor says what can be weighed here"})
}

// OnClose has something closed at the end of the run, the last first.
func (r *Run[S]) OnClose(f func() error) { r.closers = append(r.closers, f) }

// close closes everything, and looks at the machine then. A record that cannot be
// written is told of by Finish.
func (r *Run[S]) close() {
	var errs []error
	for len(r.closers) > 0 {
		last := len(r.closers) - 1
		errs = append(errs, r.closers[last]())
		r.closers = r.closers[:last]
	}
	_ = r.LeftBehind("", errors.Join(errs...))
	r.CloseOpen()
	if r.After != nil {
		for _, f := range r.After() {
			_ = r.Finding(f)
		}
	}
}

// CloseOpen closes every session, each with time of its own: the run may have
// been told to stop.
func (r *Run[S]) CloseOpen() {
	for _, t := range r.Open {
		ctx, cancel := context.WithTimeout(term.WithSayer(context.Background(), r.Warn), closing)
		_ = r.LeftBehind(t.Info.Name, t.Session.Close(ctx))
		cancel()
		if l, is := within[interface{ Leaks() []string }](t.Session); is && len(l.Leaks()) > 0 {
			_ = r.Finding(leaked(t.Info.Name, l.Leaks()))
		}
		if e, is := within[interface{ Emulated() string }](t.Session); is && e.Emulated() != "" {
			_ = r.Finding(record.Finding{Code: finding.Emulated, Level: finding.Warning, Target: t.Info.Name,
				Message: "its VM is emulated: " + e.Emulated(),
				Advice:  "its CPU and times are the emulator's, many times those with KVM, and its memory has the emulator's own: use a machine with /dev/kvm"})
		}
		if c, is := within[interface{ OwnClock() bool }](t.Session); is && c.OwnClock() {
			_ = r.Finding(record.Finding{Code: finding.OwnClock, Level: finding.Warning, Target: t.Info.Name,
				Message: "its workloads have a clock of their own (a time namespace, or a VM): when they executed their first instruction is not known",
				Advice:  "their start and run end with the call's return, and are compared by that: run it without that clock to know when workloads run"})
		}
		if n, is := within[interface{ Throttled() int64 }](t.Session); is && n.Throttled() > 0 {
			_ = r.Finding(record.Finding{Code: finding.Throttled, Level: finding.Warning, Target: t.Info.Name,
				Message: fmt.Sprintf("the API server held requests back %d times (429), by its priority and fairness: the wait is in the times", n.Throttled()),
				Advice:  "take fewer lanes at once, or give tare's user a FlowSchema of a higher priority"})
		}
	}
	r.Open = nil
}

// within is a session, or the one that it wraps, as one that can more.
func within[T any, S Session](s S) (more T, ok bool) {
	for {
		if more, ok = any(s).(T); ok {
			return more, true
		}
		w, is := any(s).(interface{ Unwrap() S })
		if !is {
			return more, false
		}
		s = w.Unwrap()
	}
}

// leaked says what a runtime left of its own sandboxes.
func leaked(target string, all []string) record.Finding {
	const most = 3
	such := strings.Join(all[:min(most, len(all))], ", ")
	return record.Finding{Code: finding.RuntimeLeft, Level: finding.Warning, Target: target,
		Message: fmt.Sprintf("the runtime left %d cgroups of its removed sandboxes behind, such as %s; tare removed them at the end", len(all), such),
		Advice:  "each costs kernel memory until it is removed: report it to the runtime"}
}

// LeftBehind records that something could not be removed, if why is not nil.
func (r *Run[S]) LeftBehind(target string, why error) error {
	if why == nil {
		return nil
	}
	return r.Finding(record.Finding{Code: finding.LeftBehind, Level: "error", Target: target,
		Message: "could not remove everything: " + why.Error(), Advice: "run: tare clean"})
}

// CleaningUp is a context for removing what a visit made: it has time of its own, beside
// what one operation may take, for the run may have been told to stop.
func CleaningUp(ctx context.Context, operation time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute+operation)
}
