// Package ready determines when workloads are ready, by polling them from outside. It wraps a
// target's session and adds a stamp to the operations that start a workload, so neither runs
// nor targets need to know of it.
//
// All times are CLOCK_MONOTONIC. A sample has the start of the last poll that found the
// workload not ready, and the end of the first one that found it ready: it became ready in
// between.
package ready

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/minder"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Opener returns [subject.Opener] for targets whose workloads are polled for readiness, and
// supervised by minder if they are the user's.
func Opener(asked setting.Ready, targets []subject.Target, env subject.Env) func(ctx context.Context, i int, runID, dir, stateDir string) (subject.Session, error) {
	if asked != "" {
		is, _ := asked.Parse() // Wrap returns the error
		env.Network, env.Ready = env.Network || is.Port != 0, asked
	}
	open := subject.Opener(targets, env)
	return func(ctx context.Context, i int, runID, dir, stateDir string) (subject.Session, error) {
		s, err := open(ctx, i, runID, dir, stateDir)
		if err != nil {
			return nil, err
		}
		if env.Workload.Cargo != nil {
			s = minder.Wrap(s, env, minder.Most(env.Lanes))
		}
		// The operations of a cluster end with readiness.
		if asked == "" || targets[i].Info().Operations[string(subject.Run)].Done == record.StampReady {
			return s, nil
		}
		w, err := Wrap(s, asked, env.Timeout)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("target %s: %w", targets[i].Info().Name, err), s.Close(context.WithoutCancel(ctx)))
		}
		return w, nil
	}
}

// Wrap polls the workloads of a session for readiness, until a time-out after their start.
func Wrap(s subject.Session, asked setting.Ready, timeout time.Duration) (subject.Session, error) {
	is, err := asked.Parse()
	if err != nil {
		return nil, fmt.Errorf("%q %w", string(asked), err)
	}
	at, ok := subject.As[subject.Reachable](s)
	if !ok {
		return nil, fmt.Errorf("%w: readiness cannot be polled on this target: omit --ready or the target", subject.ErrUnsupported)
	}
	w := &session{Session: s, at: at, asked: asked, is: is, timeout: timeout}
	if w.executor, ok = subject.As[subject.Executor](s); !ok && is.By == setting.ReadyExec {
		return nil, fmt.Errorf("%w: no exec on this target: use another form of --ready", subject.ErrUnsupported)
	}
	return w, nil
}

type session struct {
	subject.Session
	at       subject.Reachable
	executor subject.Executor // nil for none
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

// batch starts workloads and waits until they are ready. That wait is outside the edges of the
// batch, like its checks.
type batch struct {
	subject.Around
	s     *session
	lanes []int
}

// Start implements subject.Batch.
func (b *batch) Start(ctx context.Context) (int64, []record.Sample, error) {
	polling, stop := context.WithCancel(ctx)
	defer stop()
	r := &round{session: b.s, release: make(chan struct{}), lanes: len(b.lanes)}
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
	if r.released == 0 { // not released
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
	r.deadline.Store(machine.Now() + int64(b.s.timeout))
	all.Wait()
	for i := range samples {
		if x := &samples[i]; x.Failure == nil {
			watches[x.Lane].report(ctx, x)
		}
	}
	return released, samples, err
}

// round is the common state of a batch's watches.
type round struct {
	*session
	lanes    int
	taken    error         // why workloads in this machine's network cannot be polled; nil for no reason
	release  chan struct{} // closed at the release of the lanes
	released int64         // valid from then on
	deadline atomic.Int64  // set when all operations are done and checked
}
