package podman

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/record"
)

// Open implements subject.Target.
func (t *Target) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	if err := engine.Passes(env.Workload, t.info.callings()...); err != nil {
		return nil, fmt.Errorf("target %s: %w", t.name, err)
	}
	podman := t.podman
	probe, err := image.Probe(env.Workload.Files...)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", t.name, err)
	}
	if t.private {
		// One namespace for the whole session: what podman mounts for a
		// container is there for every later command.
		if podman.Mounts, err = cgroup.Without2(t.hs); err != nil {
			return nil, fmt.Errorf("target %s: %w", t.name, err)
		}
	}
	c := &commands{Target: t, podman: podman, image: probe, env: env}
	s, err := cli.Open(ctx, cli.Options{
		Target: t.name, Called: "podman", Program: podman, Line: c.Line, Engine: c, Env: env,
		Exec: execVerb, Refused: refused,
		Image:   "podman " + t.info.Store.GraphRoot + " " + probe.Ref,
		Settled: t.settled, Quiet: quiet,
		Closed: func() { closeFile(podman.Mounts) },
	})
	if err != nil {
		return nil, err
	}
	return &session{s, c}, nil
}

func closeFile(f *os.File) {
	if f != nil {
		f.Close()
	}
}

// settled makes sure that it is the chosen runtime that was weighed.
func (t *Target) settled(_ subject.Op, s cli.State) *record.Failure {
	return rightRuntime(s, t.info.Host.OCIRuntime.Name)
}

func rightRuntime(s cli.State, want string) *record.Failure {
	if s.Runtime == "" || s.Runtime == want {
		return nil
	}
	return &record.Failure{Kind: record.FailState, Detail: fmt.Sprintf("podman says that the container's runtime is %s, not %s", s.Runtime, want)}
}

// quiet waits for the monitors of stopped containers: each ends when the
// clean-up that it starts (`podman container cleanup`) is done, which holds the
// container's lock and would be part of the next operation's time.
func quiet(containers []cli.State) {
	deadline := time.Now().Add(cleanup)
	for _, c := range containers {
		if c.Monitor > 1 {
			cli.Ended(c.Monitor, time.Until(deadline))
		}
	}
}

// cleanup is how long all containers of a batch may take for that.
const cleanup = 10 * time.Second

type session struct {
	*cli.Session
	commands *commands
}

// Processes implements subject.HelperProcesses: podman has no daemon, but each container
// a monitor.
func (s *session) Processes(context.Context) []subject.Process { return cli.Staff(s.Held()) }

// Clean implements subject.Cleaner.
func (t *Target) Clean(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	return sweep(ctx, &commands{Target: t, podman: t.podman, env: subject.Env{RunID: runID}}, t.name, runID, dryRun)
}
