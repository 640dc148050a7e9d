package docker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// imagePatience is how long loading an image may take, or removing it.
const imagePatience = time.Minute

// serial numbers the containers of all sessions: those of a run that weighs two
// runtimes of one daemon must not have the same names.
var serial atomic.Int64

// Open implements subject.Target.
func (t *Target) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	s := &session{Target: t, env: env, holds: make([]holding, env.Lanes), owed: map[string]*debt{}}
	if err := s.open(ctx); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), imagePatience)
		defer cancel()
		return nil, fmt.Errorf("target %s: %w", t.name, errors.Join(err, s.Close(clean)))
	}
	return s, nil
}

type session struct {
	*Target
	env    subject.Env
	image  *image.Image
	loaded bool
	pool   *lane.Pool // nil with the API
	places *cli.Places
	holds  []holding // by lane
	// owed are the containers that were asked for and are not known to be
	// gone, by name. A name that is not here is never removed.
	owed map[string]*debt
	mute atomic.Bool // the daemon gives no logs
}

// holding is what a lane holds.
type holding struct {
	name string // "" for nothing
	id   string // the daemon's, "" while it is not known
	pid  int    // 0 while it does not run, or does so elsewhere
}

type debt struct {
	lane int
	late bool // nobody waited for the answer: it may come into being yet
	// waited: it was looked out for, in vain, and is only looked for once more.
	waited bool
}

func (s *session) open(ctx context.Context) error {
	var err error
	if err := errors.Join(cli.Elsewhere(s.env.Workload, "daemon", s.afar), engine.Passes(s.env.Workload, s.callings()...)); err != nil {
		return err
	}
	if s.image, err = image.Probe(s.env.Workload.Files...); err != nil {
		return err
	}
	if s.places, err = cli.OpenPlaces(s.env); err != nil {
		return err
	}
	if s.loaded, err = s.ensureImage(ctx, s.image); err != nil {
		return err
	}
	if s.command != nil {
		s.pool, err = lane.NewPool(lane.Options{Lanes: s.env.Lanes, Env: s.command.env})
	}
	return err
}

// making is what a container is made of.
type making struct {
	ref, runID, id string
	limits         subject.Limits
	place          cli.Place
}

// making is that of the container which a lane holds, or will.
func (s *session) making(n int) making {
	return making{s.image.Ref, s.env.RunID, s.holds[n].name, s.env.Limits, s.places.On(n)}
}

// options are what a container is created with. What is not limited is not
// mentioned: the daemon has no limits of its own.
func (t *Target) options(m making) client.ContainerCreateOptions {
	host := &container.HostConfig{NetworkMode: container.NetworkMode(t.network), Runtime: t.runtime}
	host.Memory, host.CPUShares = m.limits.Memory, m.limits.CPUShares
	if m.limits.Pids != 0 {
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
	if m.place.Tmpfs != nil {
		host.Tmpfs = map[string]string{subject.VolumePath: strings.Join(m.place.Tmpfs, ",")}
	}
	if m.place.Device != "" {
		host.Devices = []container.DeviceMapping{{PathOnHost: m.place.Device, PathInContainer: subject.DevicePath, CgroupPermissions: cli.DeviceAccess}}
	}
	return client.ContainerCreateOptions{
		Name:       m.id,
		Config:     &container.Config{Image: m.ref, Cmd: []string{m.id}, Labels: map[string]string{engine.RunLabel: m.runID}},
		HostConfig: host,
	}
}

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
	quota := m.limits.CPUQuota()
	for _, l := range []struct {
		flag  string
		value int64
	}{
		{"--memory", m.limits.Memory}, {"--pids-limit", m.limits.Pids}, {"--cpu-shares", m.limits.CPUShares},
		{"--cpu-period", subject.CPUPeriod * min(quota, 1)}, {"--cpu-quota", quota},
	} {
		if l.value != 0 {
			args = append(args, l.flag, strconv.FormatInt(l.value, 10))
		}
	}
	args = append(args, m.place.Flags(m.place.Tmpfs...)...)
	return append(args, m.ref, m.id)
}

// Prepare implements subject.Session.
func (s *session) Prepare(ctx context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	batch, err := s.arm(ctx, op, lanes)
	if err != nil {
		return nil, fmt.Errorf("target %s: %s: %w", s.name, op, err)
	}
	return batch, nil
}

func (s *session) arm(ctx context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	switch op {
	case subject.Create, subject.Run:
		// Another run may have removed the image when it ended.
		loaded, err := s.ensureImage(ctx, s.image)
		if err != nil {
			return nil, err
		}
		s.loaded = s.loaded || loaded
		for _, n := range lanes {
			s.holds[n] = holding{name: engine.Name(s.env.RunID, n, int(serial.Add(1)))}
			s.owed[s.holds[n].name] = &debt{lane: n}
		}
	case subject.Start, subject.Stop, subject.Remove:
	default:
		return nil, subject.ErrUnsupported
	}
	if s.command != nil {
		return s.armCommands(op, lanes)
	}
	calls := make([]batch.Call, len(lanes))
	for i, n := range lanes {
		calls[i] = s.call(op, n)
	}
	batch, err := batch.PrepareCalls(calls)
	if err != nil {
		return nil, err
	}
	batch.Warm = func(ctx context.Context) error { return s.warm(ctx, len(lanes)) }
	batch.Settle = s.settle(op)
	return batch, nil
}

// call is one operation on one lane through the API.
func (s *session) call(op subject.Op, n int) batch.Call {
	id := s.holds[n].name
	c := batch.Call{Lane: n, Timeout: s.env.Timeout, Command: s.requests(op, s.making(n))}
	switch op {
	case subject.Create, subject.Run:
		o := s.options(s.making(n))
		c.Do = func(ctx context.Context) error {
			made, err := s.ContainerCreate(ctx, o)
			if err == nil && op == subject.Run {
				_, err = s.ContainerStart(ctx, made.ID, client.ContainerStartOptions{})
			}
			return s.plain(err)
		}
	case subject.Start:
		c.Do = func(ctx context.Context) error {
			_, err := s.ContainerStart(ctx, id, client.ContainerStartOptions{})
			return s.plain(err)
		}
	case subject.Stop:
		c.Watch = s.holds[n].pid
		c.Do = func(ctx context.Context) error {
			_, err := s.ContainerStop(ctx, id, client.ContainerStopOptions{})
			return s.plain(err)
		}
	default:
		c.Do = func(ctx context.Context) error {
			_, err := s.ContainerRemove(ctx, id, client.ContainerRemoveOptions{})
			return s.plain(err)
		}
	}
	return c
}

func (s *session) armCommands(op subject.Op, lanes []int) (subject.Batch, error) {
	tasks := make([]batch.Task, len(lanes))
	for i, n := range lanes {
		tasks[i] = batch.Task{Lane: n, Order: lane.Order{
			Kind: lane.Exec, Timeout: s.env.Timeout,
			Args: s.command.args(s.verb(op, s.making(n))...),
		}}
	}
	batch, err := batch.PrepareOrders(s.pool, tasks)
	if err != nil {
		return nil, err
	}
	batch.Settle = s.settle(op)
	return batch, nil
}
