package containerd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// leftovers are things of one run in one namespace.
type leftovers struct {
	containers []string
	snapshots  map[string][]string // by snapshotter
	leases     []string
	images     []string
	namespace  string // "" when it is not the run's
}

// findOf lists what bears a run's id: containers, snapshots and leases.
func findOf(ctx context.Context, c *client.Client, runID string) (leftovers, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	left := leftovers{snapshots: map[string][]string{}}
	var errs []error
	containers, err := c.ContainerService().List(ctx, fmt.Sprintf("labels.%q==%q", engine.RunLabel, runID))
	errs = append(errs, err)
	for _, one := range containers {
		if engine.OfRun(one.ID, runID) {
			left.containers = append(left.containers, one.ID)
		}
	}
	held, err := c.LeasesService().List(ctx)
	errs = append(errs, err)
	for _, l := range held {
		if engine.OfRun(l.ID, runID) {
			left.leases = append(left.leases, l.ID)
		}
	}
	reply, err := c.IntrospectionService().Plugins(ctx, "type=="+string(plugins.SnapshotPlugin))
	if err == nil {
		for _, p := range reply.Plugins {
			if p.InitErr != nil {
				continue
			}
			// Proxies of other snapshotters may be down.
			_ = c.SnapshotService(p.ID).Walk(ctx, func(_ context.Context, info snapshots.Info) error {
				if engine.OfRun(info.Name, runID) {
					left.snapshots[p.ID] = append(left.snapshots[p.ID], info.Name)
				}
				return nil
			}, fmt.Sprintf("labels.%q==%q", engine.RunLabel, runID))
		}
	}
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return left, fmt.Errorf("look for what run %s left: %w", runID, err)
	}
	return left, nil
}

// withImages adds the run's images that no container uses, and the namespace if
// a run made it.
func (l *leftovers) withImages(ctx context.Context, c *client.Client, runID string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all, err := c.ImageService().List(ctx)
	if err != nil {
		return fmt.Errorf("look for images: %w", err)
	}
	containers, err := c.ContainerService().List(ctx)
	if err != nil {
		return fmt.Errorf("look for containers: %w", err)
	}
	for _, i := range all {
		inUse := false
		for _, one := range containers {
			inUse = inUse || one.Image == i.Name && !slices.Contains(l.containers, one.ID)
		}
		if strings.HasPrefix(i.Name, image.Repository+":") && i.Labels[engine.RunLabel] == runID && !inUse {
			l.images = append(l.images, i.Name)
		}
	}
	labels, err := c.NamespaceService().Labels(ctx, c.DefaultNamespace())
	if err == nil && labels[engine.RunLabel] == runID {
		l.namespace = c.DefaultNamespace()
	}
	return nil
}

// names are those of containers, whatever there is of them: without the leases
// that hold images, which another target of the same run may still need.
func (l *leftovers) names() []string {
	all := slices.Concat(l.containers, l.leases)
	for _, names := range l.snapshots {
		all = append(all, names...)
	}
	all = slices.DeleteFunc(all, func(name string) bool { return strings.Contains(name, "-image-") })
	slices.Sort(all)
	return slices.Compact(all)
}

// lines lists them, one a line.
func (l *leftovers) lines() []string {
	var out []string
	add := func(kind string, names ...string) {
		for _, n := range names {
			out = append(out, kind+" "+n)
		}
	}
	add("container", l.containers...)
	for snapshotter, names := range l.snapshots {
		for _, n := range names {
			if !slices.Contains(l.containers, n) { // or it is the container's own
				add(snapshotter+" snapshot", n)
			}
		}
	}
	add("lease", l.leases...)
	add("image", l.images...)
	if l.namespace != "" {
		add("namespace", l.namespace)
	}
	return out
}

// removing is how long the removal of all that a run left may take. With 200
// containers on two busy CPUs it is half a minute.
const removing = 2 * time.Minute

// remove removes them all, by force. What is gone already is no error.
func (l *leftovers) remove(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, removing)
	defer cancel()
	errs := []error{engine.Each(len(l.containers), func(i int) error { return removeContainer(ctx, c, l.containers[i]) })}
	for snapshotter, names := range l.snapshots {
		errs = append(errs, engine.Each(len(names), func(i int) error {
			return lost("snapshot "+names[i], c.SnapshotService(snapshotter).Remove(ctx, names[i]))
		}))
	}
	for _, name := range l.images {
		errs = append(errs, lost("image "+name, c.ImageService().Delete(ctx, name)))
	}
	for n, id := range l.leases {
		var opts []leases.DeleteOpt
		if n == len(l.leases)-1 { // the last one makes containerd collect what nothing refers to any more
			opts = append(opts, leases.SynchronousDelete)
		}
		errs = append(errs, lost("lease "+id, c.LeasesService().Delete(ctx, leases.Lease{ID: id}, opts...)))
	}
	return errors.Join(errs...)
}

func lost(what string, err error) error {
	if err == nil || errdefs.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("remove the %s: %w", what, err)
}

// removeContainer kills a container's processes and removes its task and its
// record. A task can be deleted only some time after it was killed, and one
// that is still being made not before it is.
func removeContainer(ctx context.Context, c *client.Client, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	service := c.TaskService()
	for {
		_, err := service.Kill(ctx, &tasks.KillRequest{ContainerID: id, Signal: uint32(syscall.SIGKILL), All: true})
		if err == nil || !errdefs.IsNotFound(errgrpc.ToNative(err)) {
			_, err = service.Delete(ctx, &tasks.DeleteTaskRequest{ContainerID: id})
		}
		if err = errgrpc.ToNative(err); err == nil || errdefs.IsNotFound(err) {
			break
		}
		if errdefs.IsUnavailable(err) { // the engine itself is gone
			return fmt.Errorf("remove the task %s: %w", id, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove the task %s: %w", id, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return lost("container "+id, c.ContainerService().Delete(ctx, id))
}

// removeNamespace removes a namespace that a run made, if it is empty. One that
// is still used stays: its last user takes it away.
func removeNamespace(ctx context.Context, c *client.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	labels, err := c.NamespaceService().Labels(ctx, namespace)
	if errdefs.IsNotFound(err) || err == nil && labels[engine.RunLabel] == "" {
		return nil
	}
	if err == nil {
		err = c.NamespaceService().Delete(ctx, namespace)
	}
	if err == nil || errdefs.IsNotFound(err) || errdefs.IsFailedPrecondition(err) {
		return nil
	}
	return fmt.Errorf("remove the namespace %s: %w", namespace, err)
}

// Clean implements subject.Cleaner.
func (t *Target) Clean(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	c, err := Connect(ctx, t.at.socket, t.at.namespace)
	if err != nil {
		return nil, t.failed("clean up", err)
	}
	defer func() { _ = c.Close() }()
	left, err := findOf(ctx, c, runID)
	if err == nil {
		err = left.withImages(ctx, c, runID)
	}
	if err != nil || dryRun {
		return left.lines(), t.failed("clean up", err)
	}
	err = left.remove(ctx, c)
	return left.lines(), t.failed("clean up", err, removeNamespace(ctx, c, t.at.namespace))
}
