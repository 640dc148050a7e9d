package podman

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/record"
)

// Open implements subject.Target.
func (s *Service) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	err := errors.Join(cli.Elsewhere(env.Workload, "service", s.afar), engine.Passes(env.Workload, s.callings()...))
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", s.name, err)
	}
	probe, err := image.Probe(env.Workload.Files...)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", s.name, err)
	}
	opened, err := cli.Open(ctx, cli.Options{
		Target: s.name, Called: "podman", Engine: &requests{Service: s, image: probe, env: env}, Env: env,
		Image:   "podman " + s.info.Store.GraphRoot + " " + probe.Ref,
		Settled: func(_ subject.Op, c cli.State) *record.Failure { return rightRuntime(c, s.wanted()) },
		Quiet:   quiet,
		Closed:  s.client.http.CloseIdleConnections,
	})
	if err != nil {
		return nil, err
	}
	return &served{Session: opened, Service: s, image: probe, env: env}, nil
}

// served is a session on the service.
type served struct {
	*cli.Session
	*Service
	image *image.Image // with the files that the run carries
	env   subject.Env
}

// making is that of a lane's container.
func (s *served) making(n int, name string) making {
	return making{s.env.RunID, s.image.Ref, name, s.env.Limits, s.Place(n)}
}

// Prepare implements subject.Session.
func (s *served) Prepare(ctx context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	if err := s.Ready(ctx, op); err != nil {
		return nil, err
	}
	calls := make([]batch.Call, len(lanes))
	for i, n := range lanes {
		c := s.Hold(op, n)
		call := batch.Call{Lane: n, Command: s.calls(op, s.making(n, c.Name)), Timeout: s.env.Timeout}
		if op == subject.Stop {
			call.Watch = c.Pid
		}
		if call.Do = s.order(op, s.making(n, c.Name)); call.Do == nil || c.Name == "" {
			return nil, fmt.Errorf("target %s: %s on lane %d: %w", s.name, op, n, subject.ErrUnsupported)
		}
		calls[i] = call
	}
	b, err := batch.PrepareCalls(calls)
	if err != nil {
		return nil, fmt.Errorf("target %s: %s: %w", s.name, op, err)
	}
	// Not before the release: a service that is idle for a few seconds may
	// end, and a new one be started by its socket.
	b.Warm = func(ctx context.Context) error {
		if err := s.client.warm(ctx, len(lanes)); err != nil {
			return fmt.Errorf("target %s: %s: %w", s.name, op, err)
		}
		return nil
	}
	b.Settle = func(ctx context.Context, samples []record.Sample) { s.Settle(ctx, op, samples) }
	return b, nil
}

// order prepares the requests of an operation; what it returns sends them.
func (s *served) order(op subject.Op, m making) func(context.Context) error {
	name := m.name
	one := func(method, endpoint string, body []byte, want int) func(context.Context) error {
		r := request(context.Background(), method, s.client.path(endpoint), body)
		return func(ctx context.Context) error {
			_, err := s.client.do(ctx, r, want)
			return err
		}
	}
	create := func() func(context.Context) error {
		return one(http.MethodPost, "/containers/create", s.specify(m), http.StatusCreated)
	}
	start := one(http.MethodPost, "/containers/"+name+"/start", nil, http.StatusNoContent)
	switch op {
	case subject.Create:
		return create()
	case subject.Start:
		return start
	case subject.Stop:
		return one(http.MethodPost, "/containers/"+name+"/stop", nil, http.StatusNoContent)
	case subject.Remove:
		return one(http.MethodDelete, "/containers/"+name, nil, http.StatusOK)
	case subject.Run:
		make := create()
		return func(ctx context.Context) error {
			if err := make(ctx); err != nil {
				return err
			}
			return start(ctx)
		}
	}
	return nil
}

// Processes implements subject.HelperProcesses.
func (s *served) Processes(context.Context) []subject.Process {
	out := cli.Staff(s.Held())
	if pid, err := procs.Listener(engine.Socket(s.client.address)); err == nil {
		out = append(out, subject.Process{Role: record.RoleDaemon, Pid: pid})
	}
	return out
}

// Clean implements subject.Cleaner.
func (s *Service) Clean(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	return sweep(ctx, &requests{Service: s, env: subject.Env{RunID: runID}}, s.name, runID, dryRun)
}

// Sandboxes implements subject.Sandboxed. What runs elsewhere has no process here.
func (s *served) Sandboxes(ctx context.Context) ([]subject.Sandbox, error) {
	all, err := s.Session.Sandboxes(ctx)
	if s.afar != "" {
		for i := range all {
			all[i].Workload, all[i].Group = 0, ""
		}
	}
	return all, err
}
