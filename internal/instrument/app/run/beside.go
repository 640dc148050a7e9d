package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/app"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/minder"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// shared combines the session of the service with the sessions of its neighbours on the
// same target. Each session has its own directories, lanes and names.
type shared struct {
	subject.Session
	rooms []*room // one per neighbour of the plan
}

func (s *shared) Unwrap() subject.Session { return s.Session }

// room is the session and lane of a neighbour. Neighbours that use the probe share a
// room. A nil room means that the target cannot host the neighbour.
type room struct {
	subject.Session
	lane int
}

// besides opens another session of a target for each neighbour that needs one.
func besides(ctx context.Context, own subject.Session, t subject.Target, env subject.Env, neighbours []app.Neighbour, workloads []subject.Workload) (subject.Session, error) {
	s := &shared{Session: own}
	var probes *room
	for i, w := range workloads {
		switch {
		case noRoom(neighbours[i], t) != nil:
			s.rooms = append(s.rooms, nil)
			continue
		case w.Cargo == nil && probes != nil:
			s.rooms = append(s.rooms, probes)
			continue
		}
		r, err := newRoom(ctx, t, env, w, 1+i)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make room for a neighbour: %w", err), s.Close(ctx))
		}
		s.rooms = append(s.rooms, r)
		if w.Cargo == nil {
			probes = r
		}
	}
	return s, nil
}

func newRoom(ctx context.Context, t subject.Target, env subject.Env, w subject.Workload, lane int) (*room, error) {
	// Limits apply to the service. A limited neighbour would not produce the load it
	// is named for.
	env.Workload, env.Lanes, env.Limits = w, lane+1, setting.Limits{}
	for _, dir := range []*string{&env.Dir, &env.StateDir} {
		if *dir != "" { // empty in tests
			*dir += fmt.Sprintf("-neighbour-%d", lane)
			if err := os.Mkdir(*dir, 0o755); err != nil {
				return nil, err
			}
		}
	}
	s, err := t.Open(ctx, env)
	if err == nil && w.Cargo != nil {
		s = minder.Wrap(s, env, minder.Most(1))
	}
	return &room{s, lane}, err
}

// noRoom returns why a target cannot host a neighbour, or nil.
func noRoom(n app.Neighbour, t subject.Target) *subject.Unavailable {
	if p, is := t.(subject.Refuser); is && n.Image != "" {
		return p.Refuses(&setting.Workload{Image: n.Image, Command: n.Command})
	}
	return nil
}

// homeless returns a finding for each target that cannot host a neighbour.
func homeless(n app.Neighbour, targets []subject.Target) (out []record.Finding) {
	for _, t := range targets {
		if why := noRoom(n, t); why != nil {
			out = append(out, record.Finding{Code: finding.NotWeighed, Level: finding.Note, Target: t.Info().Name,
				Message: "not loaded beside " + n.Name + ": " + why.Reason, Advice: "see its effect on the other targets"})
		}
	}
	return out
}

// Close closes all sessions.
func (s *shared) Close(ctx context.Context) error {
	var errs []error
	for i, r := range s.rooms {
		if r != nil && slices.Index(s.rooms, r) == i {
			errs = append(errs, r.Close(ctx))
		}
	}
	return errors.Join(append(errs, s.Session.Close(ctx))...)
}

// ownOf returns the session of the service.
func ownOf(s subject.Session) subject.Session {
	if s, is := s.(*shared); is {
		return s.Session
	}
	return s
}

// roomOf returns the room of a turn's neighbour, or nil.
func roomOf(t turn) *room {
	if s, is := t.Target.Session.(*shared); is && t.Part > 0 {
		return s.rooms[t.Part-1]
	}
	return nil
}

// noise is a running neighbour.
type noise struct {
	in     *room
	cancel context.CancelFunc
	done   sync.WaitGroup
	early  chan error // why a command ended on its own
}

// disturb starts a neighbour's sandbox and its load, which runs for at most the given
// time. An image's own command runs from the start.
func (v *visit) disturb(ctx context.Context, n app.Neighbour, most time.Duration) (*noise, error) {
	in := roomOf(v.turn)
	if err := started(subject.Operate(ctx, in, subject.Run, []int{in.lane})); err != nil {
		return nil, fmt.Errorf("the neighbour's sandbox did not start: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, most)
	x := &noise{in: in, cancel: cancel}
	if n.Image != "" {
		return x, nil
	}
	executor, can := subject.As[subject.Executor](in.Session)
	if !can {
		cancel()
		return nil, fmt.Errorf("sandboxes of %s do not support exec, so there is no neighbour", v.Target.Info.Name)
	}
	commands := v.work(n, most)
	if n.Pattern != "" {
		if err := v.layOut(bounded, executor, in.lane, commands[0]); err != nil {
			cancel()
			return nil, err
		}
	}
	x.early = make(chan error, len(commands))
	for _, args := range commands {
		x.done.Go(func() {
			e, err := executor.Exec(bounded, in.lane, args)
			if bounded.Err() == nil {
				x.early <- ended("the neighbour's work ended before the window did", e, err)
			}
		})
	}
	return x, nil
}

// layOut makes fio write its file and waits until the file is complete. The size of the
// file does not show completion, because fio sets the size first.
func (v *visit) layOut(ctx context.Context, executor subject.Executor, lane int, args []string) error {
	bounded, cancel := context.WithTimeout(ctx, v.options.Plan.Timeout)
	defer cancel()
	e, err := executor.Exec(bounded, lane, append(slices.Clip(args), "--create_only=1"))
	if bounded.Err() != nil {
		return fmt.Errorf("the neighbour's file was not laid out within %v: %w", v.options.Plan.Timeout, bounded.Err())
	}
	if err != nil || e.Exit != 0 {
		return ended("the neighbour's file was not laid out", e, err)
	}
	return nil
}

// work returns a neighbour's commands. They would run for at least the given time. A spin
// neighbour has one command per CPU.
func (v *visit) work(n app.Neighbour, most time.Duration) (all [][]string) {
	switch {
	case n.Pattern != "":
		return [][]string{{v.options.FioPath, "--name=neighbour", "--filename=" + subject.VolumePath + "/neighbour", "--size=256M", "--bs=4k", "--rw=" + n.Pattern,
			"--direct=1", "--ioengine=psync", "--numjobs=2", "--thread", "--time_based", fmt.Sprintf("--runtime=%d", int(most/time.Second)+1)}}
	case n.Kind == overhead.PhaseHold:
		return [][]string{probe.HoldArgs(n.Bytes, most)}
	}
	threads := math.Ceil(n.CPUs)
	for range int(threads) {
		all = append(all, probe.SpinArgs(n.CPUs/threads, most))
	}
	return all
}

// ended returns the error for a neighbour's command that ended early.
func ended(what string, e subject.Executed, err error) error {
	err = cmp.Or(err, fmt.Errorf("exit status %d", e.Exit))
	return &failure{record.Failure{Kind: record.FailWorkload, Exit: e.Exit, Command: e.Command, Output: e.Said(), Detail: fmt.Sprintf("%s: %v", what, err)}}
}

// over returns why the neighbour has stopped, or nil while it runs.
func (x *noise) over(ctx context.Context) error {
	select {
	case why := <-x.early:
		return why
	default:
	}
	at, is := subject.As[subject.Reachable](x.in.Session)
	if !is {
		return nil
	}
	pid := at.Reach(x.in.lane).Pid
	if p, err := procs.StatOf(pid); err == nil && !p.Ended() {
		return nil
	}
	e := at.Ended(ctx, x.in.lane)
	if !e.Known && pid == 0 {
		return nil // unknown
	}
	f := record.Failure{Kind: record.FailWorkload, Exit: e.Exit, Output: e.Output, Advice: e.Advice, Detail: "the neighbour ended before the window did"}
	if e.Why != "" {
		f.Detail += ": " + e.Why
	}
	return &failure{f}
}

// end stops the neighbour's load and waits for it.
func (x *noise) end() {
	x.cancel()
	x.done.Wait()
}

// started returns the error of an operation on one lane.
func started(samples []record.Sample, err error) error {
	for _, s := range samples {
		if s.Failure != nil && err == nil {
			return &failure{*s.Failure}
		}
	}
	return err
}
