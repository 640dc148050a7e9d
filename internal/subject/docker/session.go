package docker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/record"
)

// Open implements subject.Target.
func (t *Target) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	err := errors.Join(engine.Elsewhere(env.Workload, "daemon", t.afar), engine.Passes(env.Workload, t.callings()...))
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", t.name, err)
	}
	probe, err := env.Workload.Image()
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", t.name, err)
	}
	d := &driver{Target: t, image: probe, env: env}
	o := engine.Options{
		Target: t.name, Called: "the daemon", Driver: d, Env: env,
		Image: "docker " + t.host + " " + probe.Ref, Ref: probe.Ref, Guest: t.clock() == "guest",
		Runtime: t.oci(), Statistics: d.statistics, Source: "docker stats", Daemons: d.daemons,
		Closed: func(context.Context) error { t.http.CloseIdleConnections(); return nil },
	}
	if t.podman {
		o.Quiet, o.Runtime = quiet, "" // it names every runtime "oci"
	}
	if t.command != nil {
		o.Program = *t.command
		o.Line = func(op subject.Op, name string, place engine.Place) ([]string, error) {
			return t.command.Line(t.verb(op, d.making(name, place))...), nil
		}
	} else {
		o.Call, o.Warm = d.call, t.warm
	}
	s, err := engine.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &session{Session: s, driver: d}, nil
}

// session is one on a daemon. Commands are run in containers through the API,
// whatever drives the operations.
type session struct {
	*engine.Session
	*driver
}

// making is what a container is made of.
type making struct {
	ref, runID, id string
	limits         subject.Limits
	place          engine.Place
	args           []string // of the probe
}

func (d *driver) making(name string, place engine.Place) making {
	return making{d.image.Ref, d.env.RunID, name, d.env.Limits, place, d.env.Workload.Args(name)}
}

// options are what a container is created with. What is not limited is not
// mentioned: the daemon has no limits of its own.
func (t *Target) options(m making) client.ContainerCreateOptions {
	host := &container.HostConfig{NetworkMode: container.NetworkMode(t.network), Runtime: t.runtime}
	host.Ulimits = t.ulimits
	host.Memory, host.CPUShares = m.limits.Memory, m.limits.CPUShares
	if m.limits.Pids != 0 || t.podman { // which has a limit of its own
		host.PidsLimit = &m.limits.Pids
	}
	// As quota and not as NanoCPUs, which the daemon refuses beyond the
	// machine's number of CPUs.
	if quota := m.limits.CPUQuota(); quota != 0 {
		host.CPUPeriod, host.CPUQuota = subject.CPUPeriod, quota
	}
	if m.place.Bind != "" {
		host.Binds = []string{m.place.Bind}
	}
	for _, m := range m.place.Mounts {
		host.Binds = append(host.Binds, string(m))
	}
	if m.place.Tmpfs != nil {
		host.Tmpfs = map[string]string{subject.VolumePath: strings.Join(m.place.Tmpfs, ",")}
	}
	if m.place.Device != "" {
		host.Devices = []container.DeviceMapping{{PathOnHost: m.place.Device, PathInContainer: subject.DevicePath, CgroupPermissions: engine.DeviceAccess}}
	}
	config := &container.Config{Image: m.ref, Cmd: m.args, Labels: map[string]string{engine.RunLabel: m.runID}}
	if t.podman { // which takes none for no grace at all
		seconds := stopTimeout
		config.StopTimeout = &seconds
	}
	return client.ContainerCreateOptions{Name: m.id, Config: config, HostConfig: host}
}

// stopTimeout is Docker's own, in seconds.
const stopTimeout = 10

// verb is the same as arguments of the docker command, and the other operations
// too.
func (t *Target) verb(op subject.Op, m making) []string {
	var args []string
	switch op {
	case subject.Create:
		args = []string{"create"}
	case subject.Run:
		args = []string{"run", "--detach"}
	default:
		return []string{string(op), m.id}
	}
	args = append(args, "--pull", "never", "--name", m.id, "--label", engine.RunLabel+"="+m.runID, "--network", t.network)
	if t.runtime != "" {
		args = append(args, "--runtime", t.runtime)
	}
	if t.podman {
		args = append(args, "--stop-timeout", strconv.Itoa(stopTimeout))
	}
	for _, l := range t.ulimits {
		args = append(args, "--ulimit", l.String())
	}
	args = append(args, engine.LimitFlags(m.limits)...)
	args = append(args, m.place.Flags(m.place.Tmpfs...)...)
	return append(append(args, m.ref), m.args...)
}

// call is one operation through the API.
func (d *driver) call(_ context.Context, op subject.Op, c engine.State, place engine.Place) (do func(context.Context) error, shown string, err error) {
	m := d.making(c.Name, place)
	start := func(ctx context.Context, id string) error {
		_, err := d.ContainerStart(ctx, id, client.ContainerStartOptions{})
		return d.plain(err)
	}
	switch op {
	case subject.Create, subject.Run:
		o := d.options(m)
		do = func(ctx context.Context) error {
			made, err := d.ContainerCreate(ctx, o)
			if err == nil && op == subject.Run {
				return start(ctx, made.ID)
			}
			return d.plain(err)
		}
	case subject.Start:
		do = func(ctx context.Context) error { return start(ctx, m.id) }
	case subject.Stop:
		do = func(ctx context.Context) error {
			_, err := d.ContainerStop(ctx, m.id, client.ContainerStopOptions{})
			return d.plain(err)
		}
	default:
		do = func(ctx context.Context) error {
			_, err := d.ContainerRemove(ctx, m.id, client.ContainerRemoveOptions{})
			return d.plain(err)
		}
	}
	return do, d.requests(op, m), nil
}

// quiet waits for what Podman does after a stop: each container's monitor starts
// a clean-up, which holds the container's lock and would be part of the next
// operation's time.
func quiet(containers []engine.State) {
	var ids []string
	for _, c := range containers {
		ids = append(ids, c.ID)
	}
	deadline := time.Now().Add(10 * time.Second)
	for _, p := range kata.Beside(ids) {
		if p.Role == record.RoleMonitor {
			engine.Ended(p.Pid, time.Until(deadline))
		}
	}
}
