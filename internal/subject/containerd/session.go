package containerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	types "github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/netns"
)

// Open implements subject.Target.
func (t *Target) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	d := &driver{
		Target: t, env: env,
		fifos:      filepath.Join(env.StateDir, "fifo"),
		containers: map[string]*container{},
	}
	if err := d.open(ctx); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return nil, engine.Failed(t.name, "open", err, d.close(clean))
	}
	s, err := engine.Open(ctx, engine.Options{
		Target: t.name, Called: "containerd", Driver: d, Env: env, Guest: t.clock() == "guest",
		Image: "containerd " + engine.NewName(env.RunID, 0), Ref: d.probe.Ref, // each session has its own lease on the image
		Call: d.call, Warm: d.warm, Statistics: d.statistics, Source: "ctr task metrics",
		PlainLog: true, Daemons: func() []int { return engine.Listeners(t.at.socket) },
		Removed: d.erase, Closed: d.close,
	})
	if err != nil {
		return nil, err
	}
	return &session{Session: s, driver: d}, nil
}

// session is a session on containerd.
type session struct {
	*engine.Session
	*driver
}

// driver implements engine.Driver.
type driver struct {
	*Target
	env        subject.Env
	probe      *image.Image // the workload's image
	client     *client.Client
	image      *Image                // probe in containerd
	ground     *engine.Ground        // of the containers
	fifos      string                // folder for the output of execs
	containers map[string]*container // by name
	networks   *netns.Networks       // nil if tare can enter the containers' own networks
	waiting    context.Context       // context of waits for exits
	done       context.CancelFunc
}

// container is the state of a lane's container in addition to that in engine.Session.
type container struct {
	id      string
	address string // in the network that tare made for it; "" for none
	made    client.Container
	task    client.Task
	spec    *specs.Process
}

func (d *driver) open(ctx context.Context) (err error) {
	d.waiting, d.done = context.WithCancel(context.WithoutCancel(ctx))
	if err := engine.Passes(d.env.Workload, d.runtime.shim, d.runtime.path); err != nil {
		return err
	}
	if d.client, err = Connect(ctx, d.at.socket, d.at.namespace); err != nil {
		return err
	}
	if d.ground, err = engine.OpenGround(d.env, d.hs, true); err != nil {
		return err
	}
	if d.env.Network && d.clock() == "guest" && d.network != subject.NetworkHost {
		d.networks = netns.New(d.env.RunID)
	}
	d.probe, err = d.env.Image()
	return err
}

// close implements engine.Options.Closed.
func (d *driver) close(ctx context.Context) error {
	d.done()
	errs := []error{d.ground.Close(), d.networks.Close()}
	if d.client != nil {
		errs = append(errs, removeNamespace(ctx, d.client, d.at.namespace), d.client.Close())
	}
	return errors.Join(errs...)
}

// warm makes a call, since the connection may have been idle.
func (d *driver) warm(ctx context.Context, _ int) error {
	return patiently(ctx, func(ctx context.Context) error {
		if _, err := d.client.Version(ctx); err != nil {
			return fmt.Errorf("containerd does not answer: %w", err)
		}
		return nil
	})
}

// Import implements engine.Driver. The lease protects the image from removal, except by tare
// clean.
func (d *driver) Import(ctx context.Context) (made bool, err error) {
	ask, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if d.image != nil {
		if _, err := d.client.SnapshotService(d.snapshotter).Stat(ask, d.image.Chain); err == nil {
			return false, nil
		}
	}
	// The label marks the namespace for removal at the end.
	err = d.client.NamespaceService().Create(ask, d.at.namespace, map[string]string{engine.RunLabel: d.env.RunID})
	if err != nil && !errdefs.IsAlreadyExists(err) {
		return false, fmt.Errorf("make the namespace %s: %w", d.at.namespace, err)
	}
	i, err := Import(ctx, d.client, d.probe, d.snapshotter, d.env.RunID)
	if err != nil {
		return false, err
	}
	d.image = i
	return true, nil
}

var statuses = map[types.Status]engine.Status{
	types.Status_CREATED: engine.Created, types.Status_RUNNING: engine.Running, types.Status_STOPPED: engine.Exited,
}

// Look implements engine.Driver by one Tasks.List. For a VM or gVisor the reported process is the
// sandbox's.
func (d *driver) Look(ctx context.Context, names []string) (map[string]engine.State, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := d.client.TaskService().List(ctx, &tasks.ListTasksRequest{})
	if err != nil {
		return nil, fmt.Errorf("Tasks.List: %w", errgrpc.ToNative(err))
	}
	known := map[string]engine.State{}
	for _, p := range list.Tasks {
		if !slices.Contains(names, p.ID) {
			continue
		}
		s := engine.State{Name: p.ID, ID: p.ID, Said: strings.ToLower(p.Status.String()), Pid: int(p.Pid), Exit: int(p.ExitStatus),
			Status: cmp.Or(statuses[p.Status], engine.Other), Group: d.ground.Group(p.ID), GroupRequested: true, Log: d.ground.Log(p.ID)}
		if c := d.containers[p.ID]; c != nil {
			s.Address = c.address
		}
		known[p.ID] = s
	}
	return known, nil
}

// Output implements engine.Driver. The shim copies output unchanged.
func (d *driver) Output(_ context.Context, containers []engine.State) (string, error) {
	return engine.ReadLogs(containers, true)
}

// erase removes cgroups, logs and networks of containers.
func (d *driver) erase(names []string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, d.ground.Erase(name), d.networks.Remove(name))
		delete(d.containers, name)
	}
	return errors.Join(errs...)
}
