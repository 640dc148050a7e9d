package docker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Open implements subject.Target.
func (t *Target) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	probe, err := env.Image()
	err = errors.Join(engine.Elsewhere(env.Workload, "daemon", t.remote), engine.Passes(env.Workload, t.aliases()...), err)
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
		o.Monitored, o.Runtime = true, "" // Podman's service reports every runtime as "oci"
	}
	if t.command != nil {
		o.Program = *t.command
		o.Line = func(op subject.Op, name string, place engine.Place) ([]string, error) {
			return d.commands().Line(op, name, place), nil
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

// session is a session on a daemon. Execs use the API, also if the docker command drives the
// operations.
type session struct {
	*engine.Session
	*driver
}

// options returns the options of a new container. Limits of 0 are omitted: the daemon has no default
// limits.
func (d *driver) options(name string, place engine.Place) client.ContainerCreateOptions {
	limits := d.env.Limits
	host := &container.HostConfig{NetworkMode: container.NetworkMode(d.network), Runtime: d.runtime}
	host.Ulimits = d.ulimits
	host.Memory, host.CPUShares = limits.Memory, limits.CPUShares
	if limits.Pids != 0 || d.podman { // Podman has a default limit
		host.PidsLimit = &limits.Pids
	}
	// The daemon refuses NanoCPUs beyond the machine's number of CPUs, but no quota.
	if quota := limits.CPUQuota(); quota != 0 {
		host.CPUPeriod, host.CPUQuota = subject.CPUPeriod, quota
	}
	host.Binds = place.Binds()
	if place.Tmpfs != nil {
		host.Tmpfs = map[string]string{subject.VolumePath: strings.Join(place.Tmpfs, ",")}
	}
	if place.Device.Node != "" {
		host.Devices = []container.DeviceMapping{{PathOnHost: place.Device.Node, PathInContainer: subject.DevicePath, CgroupPermissions: engine.DeviceAccess}}
	}
	config := &container.Config{Image: d.image.Ref, Cmd: d.env.Workload.Args(name), Labels: map[string]string{engine.RunLabel: d.env.RunID}}
	if d.podman { // Podman takes a missing value as 0
		config.StopTimeout = new(stopTimeout)
	}
	return client.ContainerCreateOptions{Name: name, Config: config, HostConfig: host}
}

// stopTimeout is Docker's default, in seconds.
const stopTimeout = 10

// commands returns the docker command lines that make the same container.
func (d *driver) commands() *engine.Commands {
	return &engine.Commands{Program: *d.command, Env: d.env, Image: d.image, Making: d.making}
}

func (d *driver) making(name string, place engine.Place) []string {
	line := []string{"--pull", "never", "--name", name, "--label", engine.RunLabel + "=" + d.env.RunID, "--network", d.network}
	if d.runtime != "" {
		line = append(line, "--runtime", d.runtime)
	}
	if d.podman {
		line = append(line, "--stop-timeout", strconv.Itoa(stopTimeout))
	}
	for _, l := range d.ulimits {
		line = append(line, "--ulimit", l.String())
	}
	return append(append(line, engine.LimitFlags(d.env.Limits)...), place.Flags(place.Tmpfs...)...)
}

// call returns a function that performs an operation through the API.
func (d *driver) call(_ context.Context, op subject.Op, c engine.State, place engine.Place) (do func(context.Context) error, shown string, err error) {
	at := "/v" + d.ClientVersion() + "/containers"
	start := func(ctx context.Context, id string) error {
		_, err := d.ContainerStart(ctx, id, client.ContainerStartOptions{})
		return d.plain(err)
	}
	started := "POST " + at + "/" + c.Name + "/start"
	switch op {
	case subject.Create, subject.Run:
		o := d.options(c.Name, place)
		shown = "POST " + at + "/create?name=" + c.Name + " " + compact(container.CreateRequest{Config: o.Config, HostConfig: o.HostConfig})
		if op == subject.Run {
			shown += "; " + started
		}
		do = func(ctx context.Context) error {
			made, err := d.ContainerCreate(ctx, o)
			if err == nil && op == subject.Run {
				return start(ctx, made.ID)
			}
			return d.plain(err)
		}
	case subject.Start:
		shown = started
		do = func(ctx context.Context) error { return start(ctx, c.Name) }
	case subject.Stop:
		shown = "POST " + at + "/" + c.Name + "/stop"
		do = func(ctx context.Context) error {
			_, err := d.ContainerStop(ctx, c.Name, client.ContainerStopOptions{})
			return d.plain(err)
		}
	default:
		shown = "DELETE " + at + "/" + c.Name
		do = func(ctx context.Context) error {
			_, err := d.ContainerRemove(ctx, c.Name, client.ContainerRemoveOptions{})
			return d.plain(err)
		}
	}
	return do, shown, nil
}
