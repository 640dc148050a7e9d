// Package ready tells when workloads are ready, which they do not know themselves: it
// asks them from outside, again and again, until they are. It stands between a run and
// a target's session and adds a stamp to the operations that start a workload, so that
// neither of the two knows of it.
//
// All times are CLOCK_MONOTONIC. A sample holds when the last poll began that found the
// workload not ready and when the first one ended that found it ready: it became ready
// in between.
package ready

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/minder"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Opener is [subject.Opener] of targets whose workloads are asked whether they are ready,
// and minded where they are the user's own.
func Opener(asked setting.Ready, targets []subject.Target, env subject.Env) func(ctx context.Context, i int, runID, dir, stateDir string) (subject.Session, error) {
	if asked == "" {
		return minded(targets, env)
	}
	is, _ := asked.Parse() // which Wrap says what is wrong with
	env.Network, env.Ready = env.Network || is.Port != 0, asked
	open := minded(targets, env)
	return func(ctx context.Context, i int, runID, dir, stateDir string) (subject.Session, error) {
		s, err := open(ctx, i, runID, dir, stateDir)
		if err != nil || toldReady(targets[i].Info()) {
			return s, err
		}
		w, err := Wrap(s, asked, env.Timeout)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("target %s: %w", targets[i].Info().Name, err), s.Close(context.WithoutCancel(ctx)))
		}
		return w, nil
	}
}

func minded(targets []subject.Target, env subject.Env) func(ctx context.Context, i int, runID, dir, stateDir string) (subject.Session, error) {
	open := subject.Opener(targets, env)
	if env.Workload.Cargo == nil {
		return open
	}
	return func(ctx context.Context, i int, runID, dir, stateDir string) (subject.Session, error) {
		s, err := open(ctx, i, runID, dir, stateDir)
		if err != nil {
			return nil, err
		}
		return minder.Wrap(s, env, minder.Most(env.Lanes)), nil
	}
}

// toldReady says whether somebody else tells when the target's workloads are ready: a
// cluster does, of its pods.
func toldReady(info record.Target) bool {
	return info.Operations[string(subject.Run)].Done == record.StampReady
}

// Wrap has the workloads of a session asked whether they are ready, until a time-out
// after their start.
func Wrap(s subject.Session, asked setting.Ready, timeout time.Duration) (subject.Session, error) {
	is, err := asked.Parse()
	if err != nil {
		return nil, fmt.Errorf("%q %w", string(asked), err)
	}
	at, ok := subject.As[subject.Reachable](s)
	if !ok {
		return nil, fmt.Errorf("%w: it cannot be asked from outside whether a workload is ready: leave --ready out, or the target", subject.ErrUnsupported)
	}
	w := &session{Session: s, at: at, asked: asked, is: is, timeout: timeout}
	if w.executor, ok = subject.As[subject.Executor](s); !ok && is.By == setting.ReadyExec {
		return nil, fmt.Errorf("%w: it runs no further commands in its containers: ask in another way than exec", subject.ErrUnsupported)
	}
	return w, nil
}

type session struct {
	subject.Session
	at       subject.Reachable
	executor subject.Executor // nil where there is none
	asked    setting.Ready
	is       setting.Readiness
	timeout  time.Duration
}

// Unwrap implements subject.Wrapped.
func (s *session) Unwrap() subject.Session { return s.Session }

// Prepare implements subject.Session.
func (s *session) Prepare(ctx context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	b, err := s.Session.Prepare(ctx, op, lanes)
	if err != nil || op != subject.Start && op != subject.Run {
		return b, err
	}
	return &batch{Around: subject.Around{Batch: b}, s: s, lanes: lanes}, nil
}

// batch starts workloads and waits until they are ready, which is beyond the edges of the
// batch, as what is checked is.
type batch struct {
	subject.Around
	s     *session
	lanes []int
}

// Start implements subject.Batch.
func (b *batch) Start(ctx context.Context) (int64, []record.Sample, error) {
	polling, stop := context.WithCancel(ctx)
	defer stop()
	r := &round{session: b.s, release: make(chan struct{}), started: make(chan struct{}), lanes: len(b.lanes)}
	if b.s.is.Port != 0 {
		r.taken = occupied(b.s.is.Port)
	}
	watches := map[int]*watch{}
	var all sync.WaitGroup
	for _, n := range b.lanes {
		ctx, cancel := context.WithCancel(polling)
		w := &watch{round: r, lane: n, stop: cancel}
		watches[n] = w
		all.Go(func() { w.run(ctx) })
	}
	released, samples, err := b.StartWith(ctx, func() {
		r.released = machine.Now()
		close(r.release)
	})
	if r.released == 0 { // it was not released at all
		stop()
		close(r.release)
	}
	failed := map[int]bool{}
	for i := range samples {
		failed[samples[i].Lane] = samples[i].Failure != nil
	}
	for n, w := range watches {
		if was, known := failed[n]; err != nil || was || !known {
			w.stop()
		}
	}
	r.deadline = machine.Now() + int64(b.s.timeout)
	close(r.started)
	all.Wait()
	for i := range samples {
		if x := &samples[i]; x.Failure == nil {
			watches[x.Lane].tell(ctx, x)
		}
	}
	return released, samples, err
}

// round is what the watches of a batch have in common.
type round struct {
	*session
	lanes    int
	taken    error         // why nothing of this machine's own network can be asked, nil for no reason
	release  chan struct{} // closed when the lanes are let go
	released int64         // known from then on
	started  chan struct{} // closed when all operations are done and checked
	deadline int64         // known from then on
}

// hasStarted tells whether the operations have been done.
func (r *round) hasStarted() bool {
	select {
	case <-r.started:
		return true
	default:
		return false
	}
}
