package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/record"
)

// queryTimeout bounds each query after a batch.
const queryTimeout = 30 * time.Second

// Settle checks that the operations that reported success took effect, on all lanes at once.
func (s *Session) Settle(run context.Context, op subject.Op, samples []record.Sample) {
	ctx, cancel := context.WithTimeout(run, queryTimeout)
	defer cancel()
	var done []*record.Sample
	var names []string
	for i := range samples {
		if f := samples[i].Failure; f != nil {
			// If the command exited with an error, the engine no longer works on the
			// container.
			if f.Kind != record.FailExit || f.Exit > 128 {
				s.late[s.lanes[samples[i].Lane].name] = true
			}
		} else {
			c := &s.lanes[samples[i].Lane]
			done, names = append(done, &samples[i]), append(names, c.name)
		}
	}
	defer func() { s.markInterrupted(run, done) }()
	switch {
	case len(done) == 0:
		return
	case op == subject.RemovePod || op == subject.Remove && !s.o.Pods:
		s.settleRemoved(ctx, op, done)
		return
	case op == subject.Stop && s.o.Monitored:
		s.awaitMonitors(done)
	}
	s.verifyAll(ctx, op, names, done)
	if op == subject.Start || op == subject.Run {
		s.settleOutput(ctx, done)
		s.lookAtVM(done[0].Lane)
	}
}

// awaitMonitors waits for the monitors of stopped containers. A monitor ends after the
// clean-up that it starts (`podman container cleanup`), which holds the container's lock and
// would count towards the next operation.
func (s *Session) awaitMonitors(stopped []*record.Sample) {
	var ids []string
	for _, sample := range stopped {
		ids = append(ids, s.lanes[sample.Lane].known.ID)
	}
	deadline := time.Now().Add(monitorsEnd)
	for _, p := range kata.Helpers(ids) {
		if p.Role == record.RoleMonitor {
			Ended(p.Pid, time.Until(deadline))
		}
	}
}

// monitorsEnd bounds the clean-up of all containers of a batch.
const monitorsEnd = 10 * time.Second

// verifyAll queries until the engine's state has caught up, within its known lag. It does not
// wait for containers that it cannot read.
func (s *Session) verifyAll(ctx context.Context, op subject.Op, names []string, done []*record.Sample) {
	late, noticed := time.Now().Add(s.o.Lag), time.Now().Add(noticeTimeout)
	for ; ; time.Sleep(10 * time.Millisecond) {
		known, err := s.o.Driver.Look(ctx, names)
		var read []*record.Sample
		for _, sample := range done {
			name := s.lanes[sample.Lane].name
			sample.Failure = s.verify(ctx, op, sample, known, err)
			if _, ok := known[name]; ok || unreadOf(err, name) == nil {
				read = append(read, sample)
			}
		}
		wait := stateLags(op, read) && time.Now().Before(late) || s.endUnnoticed(op, read) && time.Now().Before(noticed)
		if !wait || ctx.Err() != nil {
			return
		}
	}
}

// stateLags reports whether a contradicted end may be a mere delay: the engine reported that a
// container ended, but may not have recorded it yet.
func stateLags(op subject.Op, done []*record.Sample) bool {
	return (op == subject.Stop || op == subject.Remove || op == subject.StopPod) &&
		slices.ContainsFunc(done, func(x *record.Sample) bool { return x.Failure != nil && x.Failure.Kind == record.FailState })
}

// endUnnoticed reports whether the process of some container has ended while the engine still
// considers it running. The engine will report its exit status later.
func (s *Session) endUnnoticed(op subject.Op, done []*record.Sample) bool {
	return (op == subject.Start || op == subject.Run) && slices.ContainsFunc(done, func(x *record.Sample) bool {
		c := &s.lanes[x.Lane].known
		return x.Failure != nil && c.Status == Running && c.Pid > 0 && !c.Remote && !c.PidUnknown && !Alive(c.Pid)
	})
}

// markInterrupted replaces failures that follow from interrupted queries, since these prove
// nothing about the container.
func (s *Session) markInterrupted(run context.Context, done []*record.Sample) {
	for _, sample := range done {
		if f := sample.Failure; f != nil && run.Err() != nil {
			sample.Failure = &record.Failure{Kind: record.FailInterrupted, Command: f.Command,
				Detail: "interrupted before the result of the operation was checked"}
			s.late[s.lanes[sample.Lane].name] = true
		}
	}
}

func (s *Session) verify(ctx context.Context, op subject.Op, sample *record.Sample, known map[string]State, err error) *record.Failure {
	c := &s.lanes[sample.Lane]
	state, ok := known[c.name]
	if !ok {
		return missing(s.o.Called, kind(op), unreadOf(err, c.name))
	}
	c.known = state
	s.reached(sample.Lane)
	s.remember(state.ID, state.Pod.ID)
	f := s.o.Env.Workload.Forgive(state.verify(s.o.Called, op, s.o.Env.Workload.Signal()))
	if f == nil && s.o.Runtime != "" && state.Runtime != "" && state.Runtime != s.o.Runtime {
		f = contradicted("%s says that the container's runtime is %s, expected %s", s.o.Called, state.Runtime, s.o.Runtime)
	}
	if f != nil && state.Status == Exited { // the output may have the reason
		f.Output = strings.TrimSpace(f.Output + "\n" + s.lastOutput(ctx, state))
	}
	return f
}

// kind returns what an operation acts on.
func kind(op subject.Op) string {
	if slices.Contains(subject.PodOps, op) {
		return "pod"
	}
	return "container"
}

// missing returns the failure of a container or pod whose state is unknown.
func missing(called, what string, err error) *record.Failure {
	if err == nil {
		return contradicted("%s does not know the %s", called, what)
	}
	if e, ok := errors.AsType[*cli.Error](err); ok {
		f := contradicted("the %s's state could not be read: %v", what, e.Cause)
		f.Command, f.Exit, f.Output = e.Command, max(e.Exit, 0), e.Output
		return f
	}
	return contradicted("the %s's state could not be read: %v", what, err)
}

// settleOutput waits for the first line of every workload, which may arrive after the engine
// reports the container as running.
func (s *Session) settleOutput(ctx context.Context, done []*record.Sample) {
	var ask []State
	for _, sample := range done {
		if sample.Failure == nil {
			ask = append(ask, s.lanes[sample.Lane].known)
		}
	}
	if len(ask) == 0 {
		return
	}
	reported, err := awaitReports(ctx, min(s.o.Env.Timeout, 10*time.Second), ask, s.o.Driver.Output)
	if errors.Is(err, subject.ErrUnsupported) {
		return // without a log only the state shows that it runs
	}
	for _, sample := range done {
		if sample.Failure != nil {
			continue
		}
		ns, said := reported[s.lanes[sample.Lane].name]
		sample.Failure = batch.FirstFromLog(sample, ns, said)
		if known := s.lanes[sample.Lane].known; s.o.Guest && sample.First != 0 { // a guest clock whose time happens to be plausible
			sample.Guest, sample.First = sample.First, 0
		} else if !s.o.Guest && !known.Remote && sample.Failure == nil {
			s.Check(known.Pid, sample)
		}
		if f := sample.Failure; f != nil && err != nil {
			f.Detail += ", which could not be read: " + err.Error()
		}
	}
}

// awaitReports reads the output of containers until each has reported with its name, or the
// time is over. It returns each report's time by the workload's clock.
func awaitReports(ctx context.Context, patience time.Duration, containers []State, read func(context.Context, []State) (string, error)) (map[string]int64, error) {
	deadline := time.Now().Add(patience)
	reported := map[string]int64{}
	for {
		said, err := read(ctx, containers)
		containers = slices.DeleteFunc(slices.Clone(containers), func(c State) bool {
			ns, ok := lane.ProbeTime(said, c.Name)
			if ok {
				reported[c.Name] = ns
			}
			return ok
		})
		if len(containers) == 0 {
			return reported, nil
		}
		if errors.Is(err, subject.ErrUnsupported) || time.Now().After(deadline) || ctx.Err() != nil {
			return reported, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *Session) settleRemoved(ctx context.Context, op subject.Op, done []*record.Sample) {
	left, err := s.o.Driver.List(ctx)
	for _, sample := range done {
		c := &s.lanes[sample.Lane]
		switch {
		case err != nil:
			sample.Failure = missing(s.o.Called, kind(op), err)
		case slices.Contains(left, c.name):
			sample.Failure = contradicted("%s still knows the %s", s.o.Called, kind(op))
		default:
			if err := s.o.Removed([]string{c.name}); err != nil {
				sample.Failure = &record.Failure{Kind: record.FailError, Detail: "removed only in part: " + err.Error()}
			}
			*c = container{}
		}
	}
}
