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

// leftovers are the names of a run's objects in one namespace.
type leftovers struct {
	containers, leases []string
	snapshots          map[string][]string // by snapshotter
}

// leftOf lists the containers, snapshots and leases of a run.
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
		if engine.OfRun(l.ID, runID) && !ofImage(l.ID) { // another target of the run may need the image
			left.leases = append(left.leases, l.ID)
		}
	}
	reply, err3 := c.IntrospectionService().Plugins(ctx, "type=="+string(plugins.SnapshotPlugin))
	if err := errors.Join(err1, err2, err3); err != nil {
		return left, fmt.Errorf("list the objects of run %s: %w", runID, err)
	}
	for _, p := range reply.Plugins {
		if p.InitErr != nil {
			continue
		}
		// Proxies for other snapshotters may be down.
		_ = c.SnapshotService(p.ID).Walk(ctx, func(_ context.Context, info snapshots.Info) error {
			if engine.OfRun(info.Name, runID) {
				left.snapshots[p.ID] = append(left.snapshots[p.ID], info.Name)
			}
			return nil
		}, labelled)
	}
	return left, nil
}

// PodsOf returns the ids of a run's pods and of their containers, by pod name. It reads
// containerd's records in CRI's namespace, because CRI itself does not list pods and containers
// whose creation is still in progress.
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

// List implements engine.Driver. It lists the names of all objects of the run, including
// snapshots whose container was never created.
func (d *driver) List(ctx context.Context) ([]string, error) {
	left, err := leftOf(ctx, d.client, d.env.RunID)
	all := slices.Concat(left.containers, left.leases)
	for _, names := range left.snapshots {
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all), err
}

// removeTimeout bounds one removal of all objects of a run. 200 containers take 30 s on two busy
// CPUs.
const removeTimeout = 2 * time.Minute

// Remove implements engine.Driver. A missing object is not an error.
func (d *driver) Remove(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
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
			return removeError("snapshot "+name, d.client.SnapshotService(snapshotter).Remove(ctx, name))
		})
	}
	each(left.leases, func(id string) error {
		return removeError("lease "+id, d.client.LeasesService().Delete(ctx, leases.Lease{ID: id}))
	})
	return errors.Join(errs...)
}

func removeError(what string, err error) error {
	if err == nil || errdefs.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("remove the %s: %w", what, err)
}

// removeContainer kills a container's processes and removes its task and record. A task can be
// deleted only after it has stopped. A task that is still being created can be deleted only
// after its creation.
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
		if errdefs.IsUnavailable(err) || machine.Sleep(ctx, 10*time.Millisecond) != nil { // unavailable: the engine has ended
			return fmt.Errorf("remove the task %s: %w", id, err)
		}
	}
	return removeError("container "+id, c.ContainerService().Delete(ctx, id))
}

// awaitStop waits, up to patience, until a killed task has stopped. Kata's shim replies to the
// kill before the task has stopped. If the task is deleted too early, the shim leaves the
// sandbox's folders and network namespace behind.
func awaitStop(ctx context.Context, service tasks.TasksClient, id string, began time.Time) {
	for time.Since(began) < patience && ctx.Err() == nil {
		reply, err := service.Get(ctx, &tasks.GetRequest{ContainerID: id})
		if err != nil || reply.GetProcess().GetStatus() == types.Status_STOPPED {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// removeNamespace removes a namespace that a run made if the namespace is empty. Otherwise
// another run still uses it and removes it later.
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
	return removeError("namespace "+namespace, err)
}

// Images implements engine.Driver.
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
	return removeError("image "+ref, d.client.ImageService().Delete(ctx, ref))
}

// RemoveLeases lists the image leases of a killed run in the client's namespace. Unless dryRun
// is set, it deletes them and the content that only they protect.
func RemoveLeases(ctx context.Context, c *client.Client, runID string, dryRun bool) (found []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	held, err := c.LeasesService().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	var errs []error
	for _, l := range held {
		if !engine.OfRun(l.ID, runID) || !ofImage(l.ID) {
			continue
		}
		found = append(found, "lease "+l.ID)
		if !dryRun {
			errs = append(errs, removeError("lease "+l.ID, c.LeasesService().Delete(ctx, l, leases.SynchronousDelete)))
		}
	}
	return found, errors.Join(errs...)
}

// Clean implements subject.Cleaner.
func (t *Target) Clean(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	c, err := Connect(ctx, t.at.socket, t.at.namespace)
	if err != nil {
		return nil, engine.Failed(t.name, "clean up", err)
	}
	defer func() { _ = c.Close() }()
	d := &driver{Target: t, client: c, env: subject.Env{RunID: runID}}
	found, err := engine.Clean(ctx, d, t.name, "container", runID, dryRun)
	held, letGo := RemoveLeases(ctx, c, runID, dryRun)
	if !dryRun {
		letGo = errors.Join(letGo, removeNamespace(ctx, c, t.at.namespace))
	}
	return append(found, held...), errors.Join(err, engine.Failed(t.name, "clean up", letGo))
}

// ofImage reports whether a lease of a run is on an image.
func ofImage(lease string) bool { return strings.Contains(lease, "-image-") }
