package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

// askers is how many questions are asked at a time: enough to be done with a
// hundred lanes in a moment, few enough to leave the daemon in peace.
const askers = 8

// settle looks whether what was reported did happen, on all lanes at once.
func (s *session) settle(op subject.Op) func(context.Context, []record.Sample) {
	return func(ctx context.Context, samples []record.Sample) {
		if op == subject.Create || op == subject.Run {
			s.remember(samples)
		}
		switch op {
		case subject.Create, subject.Remove:
			s.confirmByList(ctx, op, samples)
		default:
			each(len(samples), func(i int) {
				if samples[i].Failure == nil {
					samples[i].Failure = s.confirm(ctx, op, &samples[i])
				}
			})
		}
	}
}

// remember marks the containers that may come into being although nobody waits
// for them any more.
func (s *session) remember(samples []record.Sample) {
	for i := range samples {
		if f := samples[i].Failure; f != nil && f.Kind != record.FailExit && f.Kind != record.FailExec {
			if d := s.owed[s.holds[samples[i].Lane].name]; d != nil {
				d.late = f.Kind == record.FailTimeout || f.Kind == record.FailInterrupted
			}
		}
	}
}

// each calls f for 0 to n-1, some at a time.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, askers) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// list returns the containers of a run that the daemon has, by name.
func (c *connection) list(ctx context.Context, runID string) (map[string]container.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := c.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: client.Filters{}.Add("label", engine.RunLabel+"="+runID)})
	if err != nil {
		return nil, fmt.Errorf("list the run's containers: %w", c.plain(err))
	}
	out := make(map[string]container.Summary, len(found.Items))
	for _, item := range found.Items {
		if item.Labels[engine.RunLabel] != runID { // not what was asked for
			continue
		}
		for _, name := range item.Names {
			if name = strings.TrimPrefix(name, "/"); engine.OfRun(name, runID) {
				out[name] = item
			}
		}
	}
	return out, nil
}

// confirmByList asks one question for all lanes.
func (s *session) confirmByList(ctx context.Context, op subject.Op, samples []record.Sample) {
	if !slices.ContainsFunc(samples, func(x record.Sample) bool { return x.Failure == nil }) {
		return
	}
	found, err := s.list(ctx, s.env.RunID)
	for i := range samples {
		if samples[i].Failure != nil {
			continue
		}
		h := &s.holds[samples[i].Lane]
		item, there := found[h.name]
		switch {
		case err != nil:
			samples[i].Failure = unproven(ctx, err)
		case op == subject.Create && !there:
			samples[i].Failure = contradicts("the daemon does not list the container")
		case op == subject.Create && item.State != container.StateCreated:
			samples[i].Failure = contradicts("the container is %s, not created", item.State)
		case op == subject.Remove && there:
			samples[i].Failure = contradicts("the daemon still lists the container, as %s", item.State)
		case op == subject.Create:
			h.id = item.ID
		default:
			delete(s.owed, h.name)
			*h = holding{}
		}
	}
}

func contradicts(format string, arguments ...any) *record.Failure {
	return &record.Failure{Kind: record.FailState, Detail: "reported success, but " + fmt.Sprintf(format, arguments...)}
}

func unproven(ctx context.Context, err error) *record.Failure {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &record.Failure{Kind: record.FailInterrupted, Detail: "interrupted before it could be looked at"}
	}
	return &record.Failure{Kind: record.FailState, Detail: "reported success, but that cannot be confirmed: " + err.Error()}
}

// confirm looks at the container of one lane after start, run and stop.
func (s *session) confirm(ctx context.Context, op subject.Op, sample *record.Sample) *record.Failure {
	ctx, cancel := context.WithTimeout(ctx, min(s.env.Timeout, patience))
	defer cancel()
	h := &s.holds[sample.Lane]
	if op == subject.Stop {
		h.pid = 0
		st, f := s.inspect(ctx, h)
		if f == nil {
			f = endedAsTold(st)
		}
		return f
	}
	st, f := s.inspect(ctx, h)
	if f == nil {
		f = s.runs(st)
	}
	if f == nil {
		f = s.reported(ctx, h, sample)
	}
	if f == nil && s.local {
		h.pid = st.Pid
	}
	return f
}

// inspect asks for the state of a lane's container.
func (s *session) inspect(ctx context.Context, h *holding) (*container.State, *record.Failure) {
	found, err := s.ContainerInspect(ctx, h.name, client.ContainerInspectOptions{})
	switch {
	case cerrdefs.IsNotFound(err):
		return nil, contradicts("the daemon does not know the container")
	case err != nil:
		return nil, unproven(ctx, fmt.Errorf("inspect: %w", s.plain(err)))
	case strings.TrimPrefix(found.Container.Name, "/") != h.name || found.Container.State == nil:
		return nil, contradicts("inspect answered for container %q", found.Container.Name)
	}
	h.id = found.Container.ID
	return found.Container.State, nil
}

// runs checks a state of a container that was started.
func (s *session) runs(st *container.State) *record.Failure {
	if st.Status != container.StateRunning || !st.Running {
		f := contradicts("the container is %s with exit status %d", st.Status, st.ExitCode)
		f.Exit, f.Output = st.ExitCode, st.Error
		return f
	}
	if st.Pid <= 0 {
		return contradicts("it runs as process %d", st.Pid)
	}
	if s.local && !alive(st.Pid) {
		return &record.Failure{Kind: record.FailWorkload, Detail: fmt.Sprintf("reported success and says running, but process %d of the container is gone", st.Pid)}
	}
	return nil
}

// alive tells whether there is such a process, and it is no zombie.
func alive(pid int) bool {
	s, err := procs.StatOf(pid)
	return err == nil && !s.Ended()
}

// endedAsTold checks how a container ended that was sent SIGTERM: the probe
// exits with 0 then.
func endedAsTold(st *container.State) *record.Failure {
	switch {
	case st.Status != container.StateExited || st.Running:
		return contradicts("the container is %s, not exited", st.Status)
	case st.OOMKilled:
		return &record.Failure{Kind: record.FailWorkload, Exit: st.ExitCode, Detail: "the workload was killed for lack of memory", Output: st.Error}
	case st.ExitCode > 128:
		return &record.Failure{Kind: record.FailWorkload, Exit: st.ExitCode, Output: st.Error,
			Detail: fmt.Sprintf("the workload was killed by signal %d instead of ending on SIGTERM", st.ExitCode-128)}
	case st.ExitCode != 0:
		return &record.Failure{Kind: record.FailWorkload, Exit: st.ExitCode, Output: st.Error,
			Detail: fmt.Sprintf("the workload ended with status %d instead of 0", st.ExitCode)}
	}
	return nil
}
