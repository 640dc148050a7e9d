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

// Opener opens the i-th target of the record in the given directories.
type Opener[S Session] func(ctx context.Context, i int, runID, dir, stateDir string) (S, error)

// Time limits for opening and closing a target, so that an engine that hangs does not block the
// other targets.
const (
	opening = 5 * time.Minute
	closing = 2 * time.Minute
)

// OpenAll opens every target. It records a finding for each target that fails to open, and
// returns an error if all of them fail.
func (r *Run[S]) OpenAll(ctx context.Context, open Opener[S]) error {
	if err := r.OpenEach(ctx, open, r.NotOpened); err != nil {
		return err
	}
	if len(r.Open) == 0 && ctx.Err() == nil {
		return errors.New("no target could be opened; the findings say why")
	}
	return nil
}

// OpenEach opens every target and calls not for each failure.
func (r *Run[S]) OpenEach(ctx context.Context, open Opener[S], not func(name string, why error) error) error {
	for i := range r.Record.Targets {
		if ctx.Err() != nil {
			return nil
		}
		err := r.openOne(ctx, i, open)
		if err == nil || ctx.Err() != nil { // an interruption is not a failure to open
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
		Left() // marks an error after which the engine still has objects of the target
	}
	if errors.As(err, &left) {
		return errors.Join(err, r.LeftBehind(info.Name, left))
	}
	return err
}

// NotOpened records a finding that a target could not be opened.
func (r *Run[S]) NotOpened(name string, why error) error {
	return r.Finding(record.Finding{Code: finding.OpenFailed, Level: "error", Target: name,
		Message: why.Error(), Advice: "the run continued with the other targets; tare doctor shows what can be measured here"})
}

// OnClose registers a function to call at the end of the run. The last one is called first.
func (r *Run[S]) OnClose(f func() error) { r.closers = append(r.closers, f) }

// close runs the closers and then calls After. Finish reports errors of writing the record.
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

// CloseOpen closes every session. Each has its own time limit, because the context of the run may
// already be canceled.
func (r *Run[S]) CloseOpen() {
	for _, t := range r.Open {
		ctx, cancel := context.WithTimeout(term.WithSayer(context.Background(), r.Warn), closing)
		_ = r.LeftBehind(t.Info.Name, t.Session.Close(ctx))
		cancel()
		if l, is := as[interface{ Leaks() []string }](t.Session); is && len(l.Leaks()) > 0 {
			_ = r.Finding(leaked(t.Info.Name, l.Leaks()))
		}
		if e, is := as[interface{ Emulated() string }](t.Session); is && e.Emulated() != "" {
			_ = r.Finding(record.Finding{Code: finding.Emulated, Level: finding.Warning, Target: t.Info.Name,
				Message: "its VM is emulated: " + e.Emulated(),
				Advice:  "its CPU and times are the emulator's, many times those with KVM, and its memory has the emulator's own: use a machine with /dev/kvm"})
		}
		if c, is := as[interface{ OwnClock() bool }](t.Session); is && c.OwnClock() {
			_ = r.Finding(record.Finding{Code: finding.OwnClock, Level: finding.Warning, Target: t.Info.Name,
				Message: "its workloads have a clock of their own (a time namespace, or a VM): when they executed their first instruction is not known",
				Advice:  "start and run are timed and compared until the call returns: run it without its own clock to time the workloads"})
		}
		if n, is := as[interface{ Throttled() int64 }](t.Session); is && n.Throttled() > 0 {
			_ = r.Finding(record.Finding{Code: finding.Throttled, Level: finding.Warning, Target: t.Info.Name,
				Message: fmt.Sprintf("the API server throttled requests %d times (429, priority and fairness): the times include the delays", n.Throttled()),
				Advice:  "use fewer lanes, or give tare's user a FlowSchema with a higher priority"})
		}
	}
	r.Open = nil
}

// as returns the session as another interface. It also tries wrapped sessions.
func as[T any, S Session](s S) (more T, ok bool) {
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

// leaked returns the finding about cgroups left behind by a runtime.
func leaked(target string, all []string) record.Finding {
	const most = 3
	such := strings.Join(all[:min(most, len(all))], ", ")
	return record.Finding{Code: finding.RuntimeLeft, Level: finding.Warning, Target: target,
		Message: fmt.Sprintf("the runtime left %d cgroups of its removed sandboxes behind, such as %s; tare removed them at the end", len(all), such),
		Advice:  "each costs kernel memory until it is removed: report it to the runtime"}
}

// LeftBehind records a finding about a failed cleanup. It does nothing if why is nil.
func (r *Run[S]) LeftBehind(target string, why error) error {
	if why == nil {
		return nil
	}
	return r.Finding(record.Finding{Code: finding.LeftBehind, Level: "error", Target: target,
		Message: "could not remove everything: " + why.Error(), Advice: "run: tare clean"})
}

// CleaningUp returns a context for the cleanup of a visit. It is not canceled with the run, and
// adds its own time limit to that of one operation.
func CleaningUp(ctx context.Context, operation time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute+operation)
}
