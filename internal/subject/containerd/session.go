package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/record"
)

// Open implements subject.Target.
func (t *Target) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	s := &session{
		Target: t, env: env,
		group:      filepath.Join(cgroup.Prefix+env.RunID, filepath.Base(env.Dir)),
		logs:       filepath.Join(env.Dir, "log"),
		fifos:      filepath.Join(env.StateDir, "fifo"),
		containers: make([]*container, env.Lanes),
	}
	for n := range s.containers {
		s.containers[n] = new(container)
	}
	if err := s.open(ctx); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return nil, t.failed("open", err, s.Close(clean))
	}
	return s, nil
}

type session struct {
	*Target
	env        subject.Env
	client     *client.Client
	image      *Image
	group      string // cgroup of the target, below which each container has its own
	logs       string // folder of the containers' outputs
	fifos      string // folder of those of commands in them
	volumes    *engine.Volumes
	device     engine.Device
	containers []*container
	owed       []string // the containers of calls that were given up, which may appear later
}

// container is what a lane holds. A lane gets a new one for every container: a
// call that was given up may still write into the old one.
type container struct {
	id   string // "" where there is none
	pid  int    // of its first process, as far as it is known
	made client.Container
	task client.Task
	code uint32 // exit status, after a stop
	spec *specs.Process
}

func (s *session) open(ctx context.Context) error {
	var err error
	if s.client, err = Connect(ctx, s.place.socket, s.place.namespace); err != nil {
		return err
	}
	if err := os.MkdirAll(s.logs, 0o755); err != nil {
		return fmt.Errorf("make the folder of the containers' outputs: %w", err)
	}
	if s.device, err = engine.FindDevice(s.env.Workload, s.runtime.shim, s.runtime.path); err != nil {
		return err
	}
	if s.volumes, err = engine.OpenVolumes(s.env); err != nil {
		return err
	}
	// On v2 the controllers have to be handed down on the way to the
	// containers' groups; runtimes do that too, but not all of them.
	if err := cgroup.Delegate(s.hs, s.group, "memory", "pids", "cpu"); err != nil && !errors.Is(err, cgroup.ErrWithheld) {
		return err
	}
	// The label tells at the end that the namespace is a run's, to be removed.
	ask, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = s.client.NamespaceService().Create(ask, s.place.namespace, map[string]string{engine.RunLabel: s.env.RunID})
	if err != nil && !errdefs.IsAlreadyExists(err) {
		return fmt.Errorf("make the namespace %s: %w", s.place.namespace, err)
	}
	probe, err := image.Probe(s.env.Workload.Files...)
	if err != nil {
		return err
	}
	s.image, err = Import(ctx, s.client, probe, s.snapshotter, s.env.RunID)
	return err
}

// Prepare implements subject.Session.
func (s *session) Prepare(ctx context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	// The exits are waited for until the batch is over.
	waiting, done := context.WithCancel(context.WithoutCancel(ctx))
	calls := make([]batch.Call, len(lanes))
	for i, n := range lanes {
		call := batch.Call{Lane: n, Timeout: s.env.Timeout}
		err := s.prepare(ctx, waiting, op, n, &call)
		if err != nil {
			done()
			return nil, s.failed(string(op), err)
		}
		call.Command = strings.ReplaceAll(s.Info().Operations[string(op)].Command, "ID", s.containers[n].id)
		calls[i] = call
	}
	b, err := batch.PrepareCalls(calls)
	if err != nil {
		done()
		return nil, s.failed(string(op), err)
	}
	b.Warm = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if _, err := s.client.Version(ctx); err != nil {
			done()
			return s.failed(string(op), fmt.Errorf("containerd does not answer: %w", err))
		}
		return nil
	}
	b.Settle = func(ctx context.Context, samples []record.Sample) {
		done()
		s.settle(ctx, op, samples)
	}
	return b, nil
}

// prepare makes the call of one operation on one lane.
func (s *session) prepare(ctx, waiting context.Context, op subject.Op, n int, call *batch.Call) error {
	c := s.containers[n]
	if op != subject.Create && op != subject.Run && c.id == "" {
		return fmt.Errorf("lane %d has no container", n)
	}
	switch op {
	case subject.Create, subject.Run:
		create, err := s.creation(ctx, n)
		if err != nil {
			return err
		}
		call.Do = create
		made := s.containers[n]
		if op == subject.Run {
			call.Do = func(ctx context.Context) error {
				if err := create(ctx); err != nil {
					return err
				}
				return made.task.Start(ctx)
			}
		}
	case subject.Start:
		call.Do = c.task.Start
	case subject.Stop:
		var err error
		call.Watch = c.pid
		call.Do, err = stop(waiting, c)
		return err
	case subject.Remove:
		call.Do = func(ctx context.Context) error {
			if _, err := c.task.Delete(ctx); err != nil {
				return err
			}
			return c.made.Delete(ctx, client.WithSnapshotCleanup)
		}
	default:
		return subject.ErrUnsupported
	}
	return nil
}

// Discard implements subject.Session.
func (s *session) Discard(ctx context.Context, lanes []int) error {
	var ids []string
	for _, n := range lanes {
		if id := s.containers[n].id; id != "" {
			ids = append(ids, id)
			s.containers[n] = new(container)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	left := leftovers{containers: ids, leases: ids, snapshots: map[string][]string{s.snapshotter: ids}}
	return s.failed("discard", left.remove(ctx, s.client), s.clear(ctx), s.erase(ids))
}

// clear removes whatever bears the run's id and is held by no lane. A call that
// was given up may have succeeded late, or may yet: then it is looked for until
// nothing new appears.
func (s *session) clear(ctx context.Context) error {
	if len(s.owed) == 0 {
		return nil
	}
	late := engine.Late(len(s.owed))
	ctx, cancel := context.WithTimeout(ctx, removing+2*late)
	defer cancel()
	held := map[string]bool{}
	for _, c := range s.containers {
		held[c.id] = true
	}
	for quiet := time.Now(); time.Since(quiet) < late; time.Sleep(100 * time.Millisecond) {
		left, err := findOf(ctx, s.client, s.env.RunID)
		left.keep(held)
		if len(left.lines()) > 0 {
			quiet = time.Now()
			err = errors.Join(err, left.remove(ctx, s.client))
		}
		if err != nil {
			return engine.Owed(s.owed, err)
		}
	}
	s.owed = nil
	return nil
}

// erase removes what containers left on the machine itself.
func (s *session) erase(ids []string) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, cgroup.Remove(s.hs, filepath.Join(s.group, id)))
		os.Remove(s.logFile(id))
	}
	return errors.Join(errs...)
}

func (s *session) logFile(id string) string { return filepath.Join(s.logs, id) }

// Close implements subject.Session. Whatever bears the run's id is removed.
func (s *session) Close(ctx context.Context) error {
	var errs []error
	if s.client != nil {
		for n := range s.containers {
			s.containers[n] = new(container)
		}
		left, err := findOf(ctx, s.client, s.env.RunID)
		left.keep(nil)
		errs = append(errs, err, left.remove(ctx, s.client), s.clear(ctx))
		if s.image != nil {
			errs = append(errs, s.image.Release(ctx))
		}
		errs = append(errs, removeNamespace(ctx, s.client, s.place.namespace), s.client.Close())
	}
	errs = append(errs, cgroup.Remove(s.hs, s.group), s.volumes.Close(), mounts.RemoveTree(s.env.StateDir), mounts.RemoveTree(s.env.Dir))
	return s.failed("close", errs...)
}

// Processes implements subject.HelperProcesses.
func (s *session) Processes(context.Context) []subject.Process {
	var out []subject.Process
	if pid, err := procs.Listener(s.place.socket); err == nil {
		out = append(out, subject.Process{Role: record.RoleDaemon, Pid: pid})
	}
	var ids []string
	for _, c := range s.containers {
		ids = append(ids, c.id)
	}
	return append(out, kata.Beside(ids)...)
}
