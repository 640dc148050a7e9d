package containerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	types "github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// leftovers are what there is of a run's containers in one namespace, by their
// names.
type leftovers struct {
	containers, leases []string
	snapshots          map[string][]string // by snapshotter
}

// leftOf lists what bears a run's id: containers, snapshots and leases.
func leftOf(ctx context.Context, c *client.Client, runID string) (leftovers, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	left := leftovers{snapshots: map[string][]string{}}
	labelled := fmt.Sprintf("labels.%q==%q", engine.RunLabel, runID)
	containers, err1 := c.ContainerService().List(ctx, labelled)
	for _, one := range containers {
		if engine.OfRun(one.ID, runID) {
			left.containers = append(left.containers, one.ID)
		}
	}
	held, err2 := c.LeasesService().List(ctx)
	for _, l := range held {
		if engine.OfRun(l.ID, runID) && !ofImage(l.ID) { // which another target of the same run may still need
			left.leases = append(left.leases, l.ID)
		}
	}
	reply, err3 := c.IntrospectionService().Plugins(ctx, "type=="+string(plugins.SnapshotPlugin))
	if err := errors.Join(err1, err2, err3); err != nil {
		return left, fmt.Errorf("look for what run %s left: %w", runID, err)
	}
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
		}, labelled)
	}
	return left, nil
}

// PodsOf are the pods and their containers of a run in the records of CRI's namespace, ids by
// the pods' names: also those whose call is not answered, which CRI does not list.
func PodsOf(ctx context.Context, c *client.Client, runID string) (map[string][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all, err := c.ContainerService().List(ctx, fmt.Sprintf("labels.%q==%q", engine.RunLabel, runID))
	if err != nil {
		return nil, fmt.Errorf("list containerd's records: %w", err)
	}
	found := map[string][]string{}
	for _, one := range all {
		var spec struct {
			Annotations map[string]string `json:"annotations"`
		}
		if one.Spec == nil || json.Unmarshal(one.Spec.GetValue(), &spec) != nil {
			continue
		}
		if name := spec.Annotations["io.kubernetes.cri.sandbox-name"]; engine.OfRun(name, runID) {
			found[name] = append(found[name], one.ID)
		}
	}
	return found, nil
}

// List implements engine.Driver: whatever bears the run's id and a container's
// name, such as a snapshot whose container was never made.
func (d *driver) List(ctx context.Context) ([]string, error) {
	left, err := leftOf(ctx, d.client, d.env.RunID)
	all := slices.Concat(left.containers, left.leases)
	for _, names := range left.snapshots {
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all), err
}

// removing is how long one removal of all that a run left may take. With 200
// containers on two busy CPUs it is half a minute.
const removing = 2 * time.Minute

// Remove implements engine.Driver. What is gone already is no error.
func (d *driver) Remove(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, removing)
	defer cancel()
	left, err := leftOf(ctx, d.client, d.env.RunID)
	errs := []error{err}
	each := func(of []string, remove func(name string) error) {
		mine := slices.DeleteFunc(of, func(name string) bool { return !slices.Contains(names, name) })
		errs = append(errs, engine.Each(len(mine), func(i int) error { return remove(mine[i]) }))
	}
	each(left.containers, func(id string) error { return removeContainer(ctx, d.client, id) })
	for snapshotter, of := range left.snapshots {
		each(of, func(name string) error {
			return lost("snapshot "+name, d.client.SnapshotService(snapshotter).Remove(ctx, name))
		})
	}
	each(left.leases, func(id string) error {
		return lost("lease "+id, d.client.LeasesService().Delete(ctx, leases.Lease{ID: id}))
	})
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
	for began := time.Now(); ; {
		_, err := service.Kill(ctx, &tasks.KillRequest{ContainerID: id, Signal: uint32(syscall.SIGKILL), All: true})
		if err == nil || !errdefs.IsNotFound(errgrpc.ToNative(err)) {
			awaitStop(ctx, service, id, began)
			_, err = service.Delete(ctx, &tasks.DeleteTaskRequest{ContainerID: id})
		}
		if err = errgrpc.ToNative(err); err == nil || errdefs.IsNotFound(err) {
			break
		}
		if errdefs.IsUnavailable(err) { // the engine itself is gone
			return fmt.Errorf("remove the task %s: %w", id, err)
		}
		if machine.Sleep(ctx, 10*time.Millisecond) != nil {
			return fmt.Errorf("remove the task %s: %w", id, err)
		}
	}
	return lost("container "+id, c.ContainerService().Delete(ctx, id))
}

// awaitStop waits, for patience at most, until a task that was killed has stopped.
// Kata's shim replies to the kill before that, and one that is told to delete the
// task meanwhile leaves the sandbox's folders and its network namespace for good.
func awaitStop(ctx context.Context, service tasks.TasksClient, id string, began time.Time) {
	for time.Since(began) < patience && ctx.Err() == nil {
		reply, err := service.Get(ctx, &tasks.GetRequest{ContainerID: id})
		if err != nil || reply.GetProcess().GetStatus() == types.Status_STOPPED {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
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
	if errdefs.IsFailedPrecondition(err) {
		return nil
	}
	return lost("namespace "+namespace, err)
}

// Images implements engine.Cleaned: those that the run imported.
func (d *driver) Images(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all, err := d.client.ImageService().List(ctx)
	var refs []string
	for _, i := range all {
		refs = append(refs, engine.OwnImages([]string{i.Name}, d.env.RunID)...)
	}
	return refs, err
}

// Drop implements engine.Driver.
func (d *driver) Drop(ctx context.Context, ref string) error {
	if d.image != nil {
		return d.image.Release(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return lost("image "+ref, d.client.ImageService().Delete(ctx, ref))
}

// LetGo finds the leases by which a run that was killed holds its images in the
// namespace of a client, and deletes them unless dryRun, with what nothing else
// refers to.
func LetGo(ctx context.Context, c *client.Client, runID string, dryRun bool) (found []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	held, err := c.LeasesService().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for leases: %w", err)
	}
	var errs []error
	for _, l := range held {
		if !engine.OfRun(l.ID, runID) || !ofImage(l.ID) {
			continue
		}
		found = append(found, "lease "+l.ID)
		if !dryRun {
			errs = append(errs, lost("lease "+l.ID, c.LeasesService().Delete(ctx, l, leases.SynchronousDelete)))
		}
	}
	return found, errors.Join(errs...)
}

// Clean implements subject.Cleaner.
func (t *Target) Clean(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	c, err := Connect(ctx, t.at.socket, t.at.namespace)
	if err != nil {
		return nil, t.failed("clean up", err)
	}
	defer func() { _ = c.Close() }()
	d := &driver{Target: t, client: c, env: subject.Env{RunID: runID}}
	found, err := engine.Clean(ctx, d, t.name, "container", runID, dryRun)
	held, letGo := LetGo(ctx, c, runID, dryRun)
	if !dryRun {
		letGo = errors.Join(letGo, removeNamespace(ctx, c, t.at.namespace))
	}
	return append(found, held...), errors.Join(err, t.failed("clean up", letGo))
}

// ofImage tells whether a lease of a run's holds an image, and no container.
func ofImage(lease string) bool { return strings.Contains(lease, "-image-") }
