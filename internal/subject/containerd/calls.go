package containerd

import (
	"context"
	"fmt"
	"syscall"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/cio"

	"github.com/tare-bench/tare/internal/subject/engine"
)

// creation prepares a new container for a lane and returns the call that makes
// it. It does what client.NewContainer does with client.WithNewSnapshot,
// without the reading of the image; and its lease, which keeps the new snapshot
// from being collected until the record refers to it, has the container's name
// instead of a random one.
func (s *session) creation(ctx context.Context, n int) (func(ctx context.Context) error, error) {
	c := &container{id: engine.NewName(s.env.RunID, n)}
	s.containers[n] = c
	id := c.id
	spec, process, err := s.spec(ctx, n, id)
	if err != nil {
		return nil, err
	}
	c.spec = process
	labels := map[string]string{engine.RunLabel: s.env.RunID}
	snapshotter := s.client.SnapshotService(s.snapshotter)
	record := func(ctx context.Context, _ *client.Client, r *containers.Container) error {
		if _, err := snapshotter.Prepare(ctx, id, s.image.Chain, snapshots.WithLabels(labels)); err != nil {
			return fmt.Errorf("prepare its snapshot: %w", err)
		}
		r.Image, r.Spec, r.Labels, r.Snapshotter, r.SnapshotKey = s.image.Ref, spec, labels, s.snapshotter, id
		return nil
	}
	runtime := client.WithRuntime(s.runtime.shim, s.runtime.options())
	lease := []leases.Opt{leases.WithID(id), leases.WithLabels(labels), leases.WithExpiration(leaseTime)}
	log := cio.LogFile(s.logFile(id))
	return func(ctx context.Context) error {
		held, release, err := s.client.WithLease(ctx, lease...)
		if err != nil {
			return fmt.Errorf("Leases.Create: %w", err)
		}
		made, err := s.client.NewContainer(held, id, runtime, record)
		if err != nil {
			return fmt.Errorf("client.NewContainer: %w", err)
		}
		if err := release(ctx); err != nil {
			return fmt.Errorf("Leases.Delete: %w", err)
		}
		task, err := made.NewTask(ctx, log)
		if err != nil {
			return fmt.Errorf("container.NewTask: %w", err)
		}
		c.made, c.task = made, task
		return nil
	}, nil
}

// stop returns the call that ends a container's process and waits for its exit.
// The wait is begun here, so that the exit cannot come before it.
func stop(waiting context.Context, c *container) (func(ctx context.Context) error, error) {
	exits, err := c.task.Wait(waiting)
	if err != nil {
		return nil, fmt.Errorf("task.Wait: %w", err)
	}
	return func(ctx context.Context) error {
		if err := c.task.Kill(ctx, syscall.SIGTERM); err != nil {
			return fmt.Errorf("task.Kill: %w", err)
		}
		select {
		case exit := <-exits:
			if err := exit.Error(); err != nil {
				return fmt.Errorf("task.Wait: %w", err)
			}
			c.code = exit.ExitCode()
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}
