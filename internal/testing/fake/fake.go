// Package fake is a target with a script instead of a runtime. Latencies and failures are
// known and no real time passes, so experiments and statistics can be tested against the
// truth.
package fake

import (
	"context"
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Script returns an operation's latency (ns) or its failure. n is the index of the
// operation on this target, from 0, over all lanes.
type Script func(op subject.Op, lane, n int) (latency int64, failure *record.Failure)

// Target is a scripted target.
type Target struct {
	Name   string
	Script Script
	// Pods reports whether containers run in pods. Otherwise the target does not support
	// pod operations.
	Pods bool
	// Absent lists the operations that the target does not support.
	Absent []subject.Op
	// Log, if set, is called with every event in order.
	Log func(event string)
	// Clock is the current virtual time, which targets may share.
	Clock *int64
	// OpenError is returned by Open.
	OpenError error
	// OnOpen, if set, receives the run's environment. If it returns an error, the target
	// cannot be opened.
	OnOpen func(env subject.Env) error
	// OnRelease, if set, is called at each release, to interrupt a run.
	OnRelease func(op subject.Op)
	// OnExec returns the result of a command. By default a command exits with 0 and
	// prints nothing. Calls for several lanes may be concurrent.
	OnExec func(ctx context.Context, lane int, args []string) (subject.Executed, error)
	// OnSandbox completes the sandbox of a lane, which has its lane and an id. Its error
	// is returned by Sandboxes. May be nil.
	OnSandbox func(s *subject.Sandbox) error
	// OnStatistics returns the engine's statistics for the occupied lanes. The default is
	// none.
	OnStatistics func(ctx context.Context, lanes []int) ([]record.Statistic, error)
}

// Info implements subject.Target.
func (t *Target) Info() record.Target {
	ops := map[string]record.Operation{}
	for _, op := range t.ops() {
		done := record.StampReturned
		if op == subject.Stop {
			done = record.StampExited
		}
		ops[string(op)] = record.Operation{Command: "fake " + string(op) + " ID", Done: done, Means: "the script says so"}
	}
	for _, op := range t.Absent {
		ops[string(op)] = record.Operation{Absent: "not in the script"}
	}
	return record.Target{Name: t.Name, Kind: "fake", Version: "1", Clock: "host", Operations: ops}
}

func (t *Target) ops() []subject.Op {
	if t.Pods {
		return subject.Ops
	}
	return subject.ContainerOps
}

func (t *Target) log(format string, args ...any) {
	if t.Log != nil {
		t.Log(fmt.Sprintf(format, args...))
	}
}

// Open implements subject.Target.
func (t *Target) Open(_ context.Context, env subject.Env) (subject.Session, error) {
	t.log("open %s", t.Name)
	if t.OpenError != nil {
		return nil, t.OpenError
	}
	if t.OnOpen != nil {
		if err := t.OnOpen(env); err != nil {
			return nil, err
		}
	}
	if t.Clock == nil {
		t.Clock = new(int64(1))
	}
	return &session{Target: t, count: map[subject.Op]int{}, held: make([]life, env.Lanes)}, nil
}

type session struct {
	*Target
	count map[subject.Op]int
	held  []life // by lane
}

// life is the state of a lane.
type life struct {
	container bool
	pod       bool // running
	stopped   bool // the pod is stopped but still exists
}

// Prepare implements subject.Session.
func (s *session) Prepare(_ context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	return &batch{s: s, op: op, lanes: lanes}, nil
}

// Discard implements subject.Session.
func (s *session) Discard(_ context.Context, lanes []int) error {
	for _, n := range lanes {
		s.held[n] = life{}
	}
	return nil
}

// Close implements subject.Session.
func (s *session) Close(context.Context) error {
	s.log("close %s", s.Name)
	return nil
}

// after returns the state of a lane after an operation. ok is false if the operation is
// invalid in the current state. A target without create begins with start, like the host.
// A pod must be empty to be stopped, and stopped to be removed.
func (s *session) after(op subject.Op, l life) (then life, ok bool) {
	free := l == life{pod: s.Pods} // for a container
	switch op {
	case subject.RunPod:
		return life{pod: true}, s.Pods && l == life{}
	case subject.StopPod:
		return life{stopped: true}, l == life{pod: true}
	case subject.RemovePod:
		return life{}, l == life{stopped: true}
	case subject.Run:
		return life{container: true, pod: s.Pods}, l == life{}
	case subject.Create:
		l.container = true
		return l, free
	case subject.Remove:
		was := l.container
		l.container = false
		return l, was
	case subject.Start:
		if slices.Contains(s.Absent, subject.Create) {
			l.container = true
			return l, free
		}
	}
	return l, l.container
}

type batch struct {
	s     *session
	op    subject.Op
	lanes []int
}

// Start implements subject.Batch.
func (b *batch) Start(ctx context.Context) (int64, []record.Sample, error) {
	s := b.s
	s.log("%s %s x%d", s.Name, b.op, len(b.lanes))
	if s.OnRelease != nil {
		s.OnRelease(b.op)
	}
	*s.Clock += 1000
	released, last := *s.Clock, *s.Clock
	samples := make([]record.Sample, 0, len(b.lanes))
	for i, n := range b.lanes {
		then, ok := s.after(b.op, s.held[n])
		if !ok {
			return 0, nil, fmt.Errorf("fake %s: %s on lane %d, which holds %+v", s.Name, b.op, n, s.held[n])
		}
		latency, failure := s.Script(b.op, n, s.count[b.op])
		s.count[b.op]++
		sample := record.Sample{Lane: n, Start: released + int64(i)*10, Failure: failure}
		if ctx.Err() != nil {
			sample.Failure = &record.Failure{Kind: record.FailInterrupted, Detail: "interrupted"}
		}
		if sample.Failure == nil {
			end := sample.Start + latency
			sample.Returned = end
			if b.op == subject.Stop {
				sample.Exited = end
			}
			last = max(last, end)
			s.held[n] = then
		}
		samples = append(samples, sample)
	}
	*s.Clock = last
	return released, samples, nil
}
