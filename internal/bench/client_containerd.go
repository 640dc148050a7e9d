package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/cio"
	namespace "github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/containerd/errdefs"
	"github.com/containerd/typeurl/v2"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// containerdClient makes the calls of containerd's Go client that tare makes.
type containerdClient struct {
	clientOrders
	*client.Client
	snapshotter string
	image       *containerd.Image
	v2          bool

	id   string // of what it holds
	made client.Container
	task client.Task
}

func newContainerdClient(ctx context.Context, o clientOrders) (*containerdClient, error) {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return nil, err
	}
	c := &containerdClient{clientOrders: o, v2: cgroup.ModeOf(hs) == cgroup.V2}
	if c.Client, err = containerd.Connect(ctx, engine.Socket(o.Address), o.Namespace); err != nil {
		return nil, err
	}
	i, err := image.Probe()
	if err == nil {
		c.snapshotter, err = containerd.Snapshotter(ctx, c.Client)
	}
	if err == nil {
		c.image, err = containerd.Import(ctx, c.Client, i, c.snapshotter, o.RunID)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *containerdClient) close(ctx context.Context) error {
	return errors.Join(c.image.Release(ctx), c.Close())
}

func (c *containerdClient) spec(ctx context.Context) (typeurl.Any, error) {
	with := []oci.SpecOpts{
		oci.WithProcessArgs(probe.Name, c.id),
		oci.WithEnv([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}),
		oci.WithHostname("tare"),
		oci.WithCgroup(path.Join("/", c.Group, c.id)),
		oci.WithMemoryLimit(uint64(c.Limits.Memory)), oci.WithPidsLimit(c.Limits.Pids), oci.WithCPUShares(uint64(c.Limits.CPUShares)),
	}
	if c.v2 {
		with = append(with, oci.WithNamespacedCgroup())
	}
	s, err := oci.GenerateSpec(namespace.WithNamespace(ctx, c.Namespace), c.Client, &containers.Container{ID: c.id}, with...)
	if err != nil {
		return nil, err
	}
	s.Version = "1.0.2"
	return typeurl.MarshalAny(s)
}

func (c *containerdClient) log() string { return filepath.Join(c.Dir, c.id) }

func (c *containerdClient) creation(ctx context.Context) (func(context.Context) error, error) {
	c.id = engine.NewName(c.RunID, 0)
	spec, err := c.spec(ctx)
	if err != nil {
		return nil, err
	}
	id, labels, snapshotter := c.id, map[string]string{engine.RunLabel: c.RunID}, c.SnapshotService(c.snapshotter)
	return func(ctx context.Context) error {
		held, release, err := c.WithLease(ctx, leases.WithID(id), leases.WithLabels(labels), leases.WithExpiration(time.Hour))
		if err != nil {
			return err
		}
		c.made, err = c.NewContainer(held, id, client.WithRuntime("io.containerd.runc.v2", &options.Options{}),
			func(ctx context.Context, _ *client.Client, r *containers.Container) error {
				_, err := snapshotter.Prepare(ctx, id, c.image.Chain, snapshots.WithLabels(labels))
				r.Image, r.Spec, r.Labels, r.Snapshotter, r.SnapshotKey = c.image.Ref, spec, labels, c.snapshotter, id
				return err
			})
		if err != nil {
			return err
		}
		if err := release(ctx); err != nil {
			return err
		}
		c.task, err = c.made.NewTask(ctx, cio.LogFile(c.log()))
		return err
	}, nil
}

func (c *containerdClient) prepare(ctx context.Context, op subject.Op) (call, after func(context.Context) error, err error) {
	switch op {
	case subject.Create, subject.Run:
		create, err := c.creation(ctx)
		if op == subject.Create || err != nil {
			return create, nil, err
		}
		return func(ctx context.Context) error {
			if err := create(ctx); err != nil {
				return err
			}
			return c.task.Start(ctx)
		}, nil, nil
	case subject.Start:
		return c.task.Start, reported(c.log()), nil
	case subject.Stop:
		exits, err := c.task.Wait(ctx)
		return func(ctx context.Context) error {
			if err := c.task.Kill(ctx, syscall.SIGTERM); err != nil {
				return err
			}
			exit := <-exits
			return exit.Error()
		}, nil, err
	case subject.Remove:
		return func(ctx context.Context) error {
			if _, err := c.task.Delete(ctx); err != nil {
				return err
			}
			return c.made.Delete(ctx, client.WithSnapshotCleanup)
		}, nil, nil
	}
	return nil, nil, subject.ErrUnsupported
}

func (c *containerdClient) discard(ctx context.Context) error {
	if c.id == "" {
		return nil
	}
	held, err := c.LoadContainer(ctx, c.id)
	if err == nil {
		var task client.Task
		if task, err = held.Task(ctx, nil); err == nil {
			_, err = task.Delete(ctx, client.WithProcessKill)
		}
		if err == nil || errdefs.IsNotFound(err) {
			err = held.Delete(ctx, client.WithSnapshotCleanup)
		}
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove %s: %w", c.id, err)
	}
	c.id = ""
	return nil
}
