package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Open implements subject.Target.
func (t *Target) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	d := &driver{Target: t, env: env, held: map[string]*held{}}
	if err := d.open(ctx); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return nil, engine.Failed(t.name, "open", err, d.close(clean))
	}
	o := engine.Options{
		Target: t.name, Called: t.engineName, Driver: d, Env: env, Guest: t.clock() == "guest", Pods: true, Lag: lag, OnHost: d.network == subject.NetworkHost,
		Image: d.key(d.probe), Ref: d.probe.Ref,
		Statistics: d.containerStatistics, Source: ofContainers,
		Daemons: func() []int { return engine.Listeners(t.socket) },
		Removed: d.erase, Closed: d.close,
	}
	if t.command != nil {
		o.Program, o.Line = *t.command, d.line
	} else {
		o.Call, o.Warm = d.call, d.warm
	}
	s, err := engine.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &session{Session: s, driver: d}, nil
}

// session is a session on a CRI engine.
type session struct {
	*engine.Session
	*driver
}

// driver implements engine.Driver. The containers of engine.Driver are pods here, each with a
// container of the same name.
type driver struct {
	*Target
	env     subject.Env
	conn    *connection
	probe   *image.Image
	imageID string       // the engine's id of probe
	pause   *image.Image // nil if the engine needs none
	letGo   func(remove func() error) error
	// ground holds the pods' cgroups. Like a kubelet (cgroup_parent=/kubepods/…/podUID), tare
	// makes one cgroup per pod, and the engine makes the containers' cgroups in it.
	ground  *engine.Ground
	tmpfses *tmpfses
	held    map[string]*held // by name
	stays   error            // reason why the pause image was not removed
}

func (d *driver) open(ctx context.Context) error {
	p := d.program()
	if err := engine.Passes(d.env.Workload, d.handler, p.kind, p.path); err != nil {
		return err
	}
	if d.facts.cgroups != "cgroupfs" && d.env.Limits.Pod() != (subject.Limits{}) {
		return fmt.Errorf("limit pods: %s makes their cgroups, with the driver %s: %w", d.engineName, cmp.Or(d.facts.cgroups, "unknown"), subject.ErrUnsupported)
	}
	var err error
	if d.conn, err = connect(ctx, d.socket); err != nil {
		return err
	}
	if d.ground, err = engine.OpenGround(d.env, d.hs, d.facts.cgroups == "cgroupfs"); err != nil {
		return err
	}
	if d.tmpfses, err = openTmpfses(d.env, d.socket); err != nil {
		return err
	}
	if err := d.holdPause(ctx); err != nil {
		return err
	}
	d.probe, err = d.env.Image()
	return err
}

// close implements engine.Options.Closed.
func (d *driver) close(ctx context.Context) error {
	var errs []error
	if d.letGo != nil {
		errs = append(errs, d.letGo(func() error { return d.dropPause(ctx) }))
	}
	if d.conn != nil {
		d.conn.close()
	}
	return errors.Join(append(errs, d.ground.Close(), d.tmpfses.close())...)
}

// warm makes a call, since the connection may have been idle.
func (d *driver) warm(ctx context.Context, _ int) error {
	_, err := ask(ctx, "Version", d.conn.runtime.Version, &api.VersionRequest{})
	if err != nil {
		return fmt.Errorf("the engine does not answer: %w", err)
	}
	return nil
}

// Prepare implements subject.Session. It loads the pause image again if another run has removed
// it.
func (s *session) Prepare(ctx context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	if s.pause != nil && (op == subject.RunPod || op == subject.Run) {
		if err := engine.Renew(s.key(s.pause), func() (bool, error) { return s.givePause(ctx) }); err != nil {
			return nil, engine.Failed(s.name, string(op), err)
		}
	}
	return s.Session.Prepare(ctx, op, lanes)
}

// Look implements engine.Driver. It lists all pods and containers instead of querying single
// ones, because engines differ in how they report an unknown one.
func (d *driver) Look(ctx context.Context, names []string) (map[string]engine.State, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pods, containers, err := d.conn.listOf(ctx, d.env.RunID)
	if err != nil {
		return nil, err
	}
	d.adopt(pods, containers)
	known := map[string]engine.State{}
	for _, p := range pods {
		name := p.GetMetadata().GetName()
		if !d.holds(name, p.Id, "") || !slices.Contains(names, name) {
			continue
		}
		status := engine.Exited
		if p.State == api.PodSandboxState_SANDBOX_READY {
			status = engine.Running
		}
		group := d.ground.Group(name)
		known[name] = engine.State{Name: name, ID: p.Id, Pod: engine.Pod{ID: p.Id, Status: status, Said: p.State.String()},
			Group: group, GroupRequested: group != "", Log: d.log(name)}
	}
	more, unlisted := d.unanswered(ctx)
	for name, ids := range more {
		if _, is := known[name]; !is && slices.Contains(names, name) {
			known[name] = engine.State{Name: name, ID: ids[len(ids)-1], Pod: engine.Pod{ID: ids[0]}}
		}
	}
	states := make([]engine.State, len(containers))
	err = engine.Each(len(containers), func(i int) (err error) {
		c := containers[i]
		name := c.GetMetadata().GetName()
		if s, is := known[name]; is && d.holds(name, s.Pod.ID, c.Id) {
			if s.Address, err = d.address(ctx, s.Pod.ID); err == nil {
				states[i], err = d.withContainer(ctx, s, c)
			}
		}
		return err
	})
	for _, s := range states {
		if s.Name != "" {
			known[s.Name] = s
		}
	}
	return known, errors.Join(err, unlisted)
}

// address returns a pod's address, if workloads are reached over the network.
func (d *driver) address(ctx context.Context, pod string) (string, error) {
	if !d.env.Network || d.network != subject.NetworkBridge {
		return "", nil
	}
	reply, err := ask(ctx, "PodSandboxStatus", d.conn.runtime.PodSandboxStatus, &api.PodSandboxStatusRequest{PodSandboxId: pod})
	return reply.GetStatus().GetNetwork().GetIp(), err
}

// holds reports whether a lane's pod and container have these ids, since a foreign pod may have
// the same name. It is always true when cleaning up, and also true for a pod that an abandoned
// call on the lane may have made.
func (d *driver) holds(name, pod, container string) bool {
	h := d.held[name]
	return d.held == nil || h != nil && (h.pod == pod || h.abandoned && h.pod == "") && (container == "" || h.container == container)
}

// statuses maps the states of containers in CRI.
var statuses = map[api.ContainerState]engine.Status{
	api.ContainerState_CONTAINER_CREATED: engine.Created, api.ContainerState_CONTAINER_RUNNING: engine.Running, api.ContainerState_CONTAINER_EXITED: engine.Exited,
}

// withContainer adds a container to the state of its pod. The pid is not part of CRI, so not
// every engine reports it.
func (d *driver) withContainer(ctx context.Context, s engine.State, c *api.Container) (engine.State, error) {
	reply, err := ask(ctx, "ContainerStatus", d.conn.runtime.ContainerStatus, &api.ContainerStatusRequest{ContainerId: c.Id, Verbose: true})
	if err != nil {
		return engine.State{}, err
	}
	is := reply.GetStatus()
	s.ID, s.Status, s.Said, s.Exit = c.Id, cmp.Or(statuses[c.State], engine.Other), c.State.String(), int(is.GetExitCode())
	if s.Status == engine.Created || s.Status == engine.Running {
		s.Pid = pidIn(reply.Info)
		s.PidUnknown = s.Pid == 0
	}
	s.Began = is.GetStartedAt()
	s.Why = strings.TrimSpace(is.GetReason() + " " + is.GetMessage())
	s.ExitUnseen = s.Status == engine.Exited && slices.Contains(exitUnseen, s.Exit)
	return s, nil
}

// exitUnseen are the exit codes that containerd (container_start.go and restart.go of its CRI)
// and CRI-O report for an exit that they did not observe. The workload itself never exits with
// either.
var exitUnseen = []int{128, 255}

// Output implements engine.Driver.
func (d *driver) Output(_ context.Context, containers []engine.State) (string, error) {
	return engine.ReadLogs(containers, false)
}

// log returns the file of a pod's output. With isulad and cri-dockerd it is a link, which is
// followed only into the engine's folder of logs.
func (d *driver) log(name string) string {
	path := d.ground.Log(name)
	to, err := os.Readlink(path)
	if below, is := strings.CutPrefix(to, strings.TrimSuffix(d.facts.logs, "/")+"/"); err == nil && is && d.facts.logs != "" && engine.Within(d.facts.logs, below) {
		return to
	}
	return path
}

// List implements engine.Driver.
func (d *driver) List(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pods, containers, err := d.conn.listOf(ctx, d.env.RunID)
	var names []string
	for _, p := range pods {
		names = append(names, p.GetMetadata().GetName())
	}
	for _, c := range containers {
		names = append(names, c.GetMetadata().GetName())
	}
	more, unlisted := d.unanswered(ctx)
	names = slices.AppendSeq(names, maps.Keys(more))
	slices.Sort(names)
	return slices.Compact(names), errors.Join(err, unlisted)
}

// erase removes files, cgroups and mounts of pods. The session's end removes the rest.
func (d *driver) erase(names []string) error {
	for _, name := range names {
		_ = errors.Join(d.tmpfses.unmount(name), d.ground.Erase(name))
		if d.command != nil {
			pod, container := d.files(name)
			os.Remove(pod)
			os.Remove(container)
		}
		delete(d.held, name)
	}
	return nil
}
