package containerd

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/cio"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// creation returns the call that makes a new container. It does the same as client.NewContainer
// with client.WithNewSnapshot, but reads the image in advance. A lease protects the new snapshot
// from garbage collection until the container record refers to it. The lease has the container's
// name instead of a random one.
func (d *driver) creation(ctx context.Context, id string, place engine.Place) (func(ctx context.Context) error, *container, error) {
	c := &container{id: id}
	d.containers[id] = c
	spec, process, err := d.spec(ctx, id, place)
	if err != nil {
		return nil, nil, err
	}
	c.spec = process
	labels := map[string]string{engine.RunLabel: d.env.RunID}
	snapshotter := d.client.SnapshotService(d.snapshotter)
	record := func(ctx context.Context, _ *client.Client, r *containers.Container) error {
		if _, err := snapshotter.Prepare(ctx, id, d.image.Chain, snapshots.WithLabels(labels)); err != nil {
			return fmt.Errorf("prepare its snapshot: %w", err)
		}
		r.Image, r.Spec, r.Labels, r.Snapshotter, r.SnapshotKey = d.image.Ref, spec, labels, d.snapshotter, id
		return nil
	}
	runtime := client.WithRuntime(d.runtime.shim, d.runtime.options())
	lease := []leases.Opt{leases.WithID(id), leases.WithLabels(labels), leases.WithExpiration(leaseTime)}
	log := cio.LogFile(d.ground.Log(id))
	return func(ctx context.Context) error {
		held, release, err := d.client.WithLease(ctx, lease...)
		if err != nil {
			return fmt.Errorf("Leases.Create: %w", err)
		}
		made, err := d.client.NewContainer(held, id, runtime, record)
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
	}, c, nil
}

// stop returns the call that sends the image's stop signal to a container's process and waits
// for its exit. stop itself subscribes to the exit, so the exit cannot be missed.
func stop(waiting context.Context, c *container, signal syscall.Signal) (func(ctx context.Context) error, error) {
	exits, err := c.task.Wait(waiting)
	if err != nil {
		return nil, fmt.Errorf("task.Wait: %w", err)
	}
	return func(ctx context.Context) error {
		if err := c.task.Kill(ctx, signal); err != nil {
			return fmt.Errorf("task.Kill: %w", err)
		}
		select {
		case exit := <-exits:
			if err := exit.Error(); err != nil {
				return fmt.Errorf("task.Wait: %w", err)
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}

// call returns an operation on a container as a function.
func (d *driver) call(ctx context.Context, op subject.Op, s engine.State, place engine.Place) (do func(context.Context) error, shown string, err error) {
	shown = strings.ReplaceAll(d.Info().Operations[string(op)].Command, "ID", s.Name)
	c := d.containers[s.Name]
	switch {
	case op == subject.Create || op == subject.Run:
		create, c, err := d.creation(ctx, s.Name, place)
		if err != nil || op == subject.Create {
			return create, shown, err
		}
		return func(ctx context.Context) error {
			if err := create(ctx); err != nil {
				return err
			}
			return c.task.Start(ctx)
		}, shown, nil
	case c == nil || c.task == nil:
		return nil, shown, fmt.Errorf("no task for %s", s.Name)
	case op == subject.Start:
		return c.task.Start, shown, nil
	case op == subject.Stop:
		do, err = stop(d.waiting, c, d.env.Workload.Signal())
		return do, shown, err
	}
	return func(ctx context.Context) error {
		if _, err := c.task.Delete(ctx); err != nil {
			return err
		}
		return c.made.Delete(ctx, client.WithSnapshotCleanup)
	}, shown, nil
}
