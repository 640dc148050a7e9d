// Package floor measures a container made with system calls only: new mount, PID, network, IPC
// and UTS namespaces, a cgroup with the same limits, pivot_root into the same root file system,
// exec. No runtime can be faster. The lane makes the calls (internal/lane/src/floor.h); the
// workload is the only program that is started.
package floor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

// Name is the target's name.
const Name = "floor"

// controllers returns the cgroup controllers that the limits of containers need. It adds
// cpuacct, which counts CPU time, if that is a separate controller.
func controllers(hs []cgroup.Hierarchy) []string {
	names := []string{"memory", "pids", "cpu"}
	for _, h := range hs {
		if h.Version == 1 && h.Has("cpuacct") {
			names = append(names, "cpuacct")
		}
	}
	return names
}

// Target is the floor.
type Target struct{ hierarchies []cgroup.Hierarchy }

// New returns the floor as a target, or a *subject.Unavailable.
func New() (subject.Target, error) {
	if os.Geteuid() != 0 {
		return nil, &subject.Unavailable{Name: Name, Reason: "namespaces and cgroups need root", Advice: "run tare as root (sudo tare …)"}
	}
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return nil, &subject.Unavailable{Name: Name, Reason: err.Error()}
	}
	if cgroup.ModeOf(hs) == cgroup.None {
		return nil, &subject.Unavailable{Name: Name, Reason: "no cgroups are mounted here", Advice: "mount -t cgroup2 none /sys/fs/cgroup; or share the host's with this container: docker run -v /sys/fs/cgroup:/sys/fs/cgroup --pid host"}
	}
	return &Target{hierarchies: cgroup.Using(hs, controllers(hs)...)}, nil
}

// Info implements subject.Target.
func (t *Target) Info() record.Target {
	join := "join the cgroup"
	if len(t.hierarchies) == 1 && t.hierarchies[0].Version == 2 {
		join = "CLONE_INTO_CGROUP"
	}
	create := "mkdir the cgroup and write its limits; clone3(NEWNS|NEWPID|NEWNET|NEWIPC|NEWUTS), " + join + ", pivot_root"
	return record.Target{
		Name: Name, Kind: "floor", Clock: "host", Config: map[string]string{"root file system": engine.RootMade},
		Operations: map[string]record.Operation{
			string(subject.Create): {Command: create, Done: record.StampReturned, Means: "the process waits in its namespaces, cgroup and root"},
			string(subject.Start):  {Command: "exec the workload", Done: record.StampReturned, Means: "the process has exec'd the workload"},
			string(subject.Stop):   {Command: "kill(PID, STOP SIGNAL)", Done: record.StampExited, Means: "the stop signal was sent and the process has exited"},
			string(subject.Remove): {Command: "rmdir of the cgroup", Done: record.StampReturned, Means: "the cgroup is gone; the namespaces ended with their process"},
			string(subject.Run):    {Command: create + ", exec the workload", Done: record.StampReturned, Means: "the process has exec'd the workload"},
		},
	}
}

// Open implements subject.Target.
func (t *Target) Open(_ context.Context, env subject.Env) (subject.Session, error) {
	group := filepath.Join(cgroup.Prefix+env.RunID, Name)
	s := &session{env: env, hierarchies: t.hierarchies, group: group, boxes: make([]box, env.Lanes)}
	err := cgroup.Delegate(t.hierarchies, group, controllers(t.hierarchies)...)
	if err == nil {
		err = s.openStorage()
	}
	if err == nil {
		o := lane.Options{Lanes: env.Lanes}
		if c := env.Workload.Cargo; c != nil {
			o.Env, o.Alone = c.Env, true
		}
		s.pool, err = lane.NewPool(o)
	}
	if err != nil {
		return nil, fmt.Errorf("target floor: %w", errors.Join(err, s.Close(context.Background())))
	}
	return s, nil
}

type session struct {
	env         subject.Env
	hierarchies []cgroup.Hierarchy
	group       string // the target's cgroup, parent of those of the containers
	places      engine.Places
	pool        *lane.Pool
	boxes       []box
	made        int
}

// box is a lane's container.
type box struct {
	name string // of its cgroup; "" for none
	pid  int
}

// Prepare implements subject.Session.
func (s *session) Prepare(_ context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	tasks := make([]batch.Task, 0, len(lanes))
	for _, n := range lanes {
		b := &s.boxes[n]
		task := batch.Task{Lane: n, SharedClock: true, Order: lane.Order{Timeout: s.env.Timeout}}
		o := &task.Order
		switch op {
		case subject.Create, subject.Run:
			b.name = fmt.Sprintf("%s-floor-%d-%d", s.env.RunID, n, s.made)
			s.made++
			o.Kind, o.Args = lane.FloorCreate, s.describe(n, b.name)
			if op == subject.Run {
				o.Kind, o.Need, o.Token, o.Keep = lane.FloorRun, lane.NeedReady, b.name, engine.Said(s.env, n)
			}
			task.Seen = func(r *lane.Result) { b.pid = r.Pid }
			task.Confirm = func(ctx context.Context, _ *lane.Result, _ *record.Sample) *record.Failure {
				f := s.mountTmpfs(b)
				if f == nil && op == subject.Run {
					f = engine.EarlyEnd(ctx, s, s.env, n, b.pid)
				}
				return f
			}
		case subject.Start:
			o.Kind, o.Need, o.Token, o.Keep = lane.FloorStart, lane.NeedReady, b.name, engine.Said(s.env, n)
			task.Confirm = func(ctx context.Context, _ *lane.Result, _ *record.Sample) *record.Failure {
				return engine.EarlyEnd(ctx, s, s.env, n, b.pid)
			}
		case subject.Stop:
			o.Kind, o.Need, o.Watch, o.Signal = lane.Kill, lane.NeedExit, b.pid, s.env.Workload.Signal()
			task.Confirm = func(_ context.Context, r *lane.Result, _ *record.Sample) *record.Failure {
				b.pid = 0
				return s.env.Workload.Forgive(batch.CheckEnd(r, s.env.Workload.Signal()))
			}
		case subject.Remove:
			o.Kind = lane.FloorRemove
			for _, h := range s.hierarchies {
				o.Args = append(o.Args, "d", filepath.Join(h.Mount, s.group, b.name))
			}
			task.Confirm = func(context.Context, *lane.Result, *record.Sample) *record.Failure {
				b.name = ""
				return batch.Broken(s.clear(n))
			}
		default:
			return nil, fmt.Errorf("target floor: %s: %w", op, subject.ErrUnsupported)
		}
		tasks = append(tasks, task)
	}
	return batch.PrepareOrders(s.pool, tasks)
}

// describe returns the tagged list for src/floor.h.
func (s *session) describe(n int, name string) []string {
	var list []string
	l := s.env.Limits
	wanted := cgroup.Wanted{Memory: l.Memory, Pids: l.Pids, CPUShares: l.CPUShares, Quota: l.CPUQuota(), Period: subject.CPUPeriod}
	for _, h := range s.hierarchies {
		dir := filepath.Join(h.Mount, s.group, name)
		list = append(list, "d", dir)
		for _, limit := range cgroup.Limits(h, wanted) {
			list = append(list, "w", filepath.Join(dir, limit.File), limit.Value)
		}
		if h.Version == 2 {
			list = append(list, "c", dir)
		} else {
			list = append(list, "j", filepath.Join(dir, "cgroup.procs"))
		}
	}
	list = append(list, "r", engine.Root(s.env, n))
	place := s.places.On(n)
	if place.Folder != "" {
		list = append(list, "b", place.Folder, strings.TrimPrefix(subject.VolumePath, "/"))
	}
	for _, m := range place.Mounts {
		source, destination, readOnly := m.Parts()
		tag := map[bool]string{true: "o", false: "b"}[readOnly]
		list = append(list, tag, source, strings.TrimPrefix(destination, "/"))
	}
	if c := s.env.Workload.Cargo; c != nil {
		list = append(list, "p", "proc", "e", "environment", "i", c.Dir, "u", strconv.FormatUint(uint64(c.UID), 10), strconv.FormatUint(uint64(c.GID), 10))
	}
	return append(append(list, "x", probe.Name), s.env.Workload.Args(name)...)
}

// Discard implements subject.Session.
func (s *session) Discard(ctx context.Context, lanes []int) error {
	var errs []error
	for _, n := range lanes {
		b := &s.boxes[n]
		if b.pid != 0 {
			_, err := s.pool.Do(ctx, n, lane.Order{Kind: lane.Kill, Signal: unix.SIGKILL, Watch: b.pid, Need: lane.NeedExit, Timeout: s.env.Timeout})
			errs = append(errs, err)
			b.pid = 0
		}
		if b.name != "" {
			errs = append(errs, cgroup.Remove(s.hierarchies, filepath.Join(s.group, b.name)), s.clear(n))
			b.name = ""
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("target floor: %w", err)
	}
	return nil
}

// Close implements subject.Session.
func (s *session) Close(context.Context) error {
	s.pool.Close()
	if err := cgroup.Remove(s.hierarchies, s.group); err != nil {
		return fmt.Errorf("target floor: %w", err)
	}
	return errors.Join(s.places.Close(), mounts.RemoveTree(s.env.Dir))
}
