package podman

import (
	"context"
	"errors"
	"fmt"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Open implements subject.Target.
func (t *Target) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	podman := t.podman
	probe, err := env.Image()
	err = errors.Join(engine.Passes(env.Workload, t.info.aliases()...), err)
	if err == nil && t.private {
		// One namespace for the session: podman's mounts for a container have to be visible to
		// later commands.
		podman.Mounts, err = cgroup.Without2(t.hs)
	}
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", t.name, err)
	}
	return t.commands(podman, env, probe).Open(ctx, engine.Options{
		Target: t.name, Image: "podman " + t.info.Store.GraphRoot + " " + probe.Ref, Guest: t.info.clock() == "guest",
		Runtime: t.info.Host.OCIRuntime.Name, Monitored: true, Source: statsSource,
		Closed: func(context.Context) error { return podman.Leave() },
	})
}

// Clean implements subject.Cleaner.
func (t *Target) Clean(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	return engine.Clean(ctx, t.commands(t.podman, subject.Env{RunID: runID}, nil), t.name, "container", runID, dryRun)
}
