package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/netns"
	"github.com/tare-bench/tare/record"
)

// stateChecks is how many lanes of a batch are asked for their state
// afterwards. One command a lane would take as long as the batch itself; every
// lane is proved by its pid file, the probe's report and its exit anyway.
const stateChecks = 4

// Open implements subject.Target.
func (t *Target) Open(_ context.Context, env subject.Env) (subject.Session, error) {
	s := &session{
		Target: t, env: env,
		state:      filepath.Join(env.StateDir, "state"),
		group:      filepath.Join(cgroup.Prefix+env.RunID, filepath.Base(env.Dir)),
		containers: make([]container, env.Lanes),
	}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("target %s: %w", t.name, errors.Join(err, s.Close(context.Background())))
	}
	return s, nil
}

type session struct {
	*Target
	engine.ClockCheck
	env        subject.Env
	state      string // the runtime's --root
	group      string // cgroup of the target, below which each container has its own
	mounts     *os.File
	networks   *netns.Networks // nil where a container's own can be entered
	volumes    *engine.Volumes
	device     engine.Device
	pool       *lane.Pool
	containers []container
	made       int
	executed   atomic.Int64 // commands, by which their files are named
}

// container is what a lane holds.
type container struct {
	id      string // "" where there is none
	dir     string // bundle and pid file
	root    string // its root file system
	address string // its own in the network that tare made for it, "" where that is the runtime's to make
	pid     int
}

func (c *container) pidFile() string { return filepath.Join(c.dir, "pid") }

func (s *session) open() error {
	if err := os.MkdirAll(s.state, 0o711); err != nil {
		return fmt.Errorf("make the runtime's state folder: %w", err)
	}
	var err error
	if s.private {
		if s.mounts, err = cgroup.Without2(s.hs); err != nil {
			return err
		}
	}
	if err := s.openStorage(); err != nil {
		return err
	}
	if s.env.Network && s.flavour.guestClock {
		s.Target = s.reached()
		s.networks = netns.New(s.env.RunID)
	}
	// On v2 the controllers have to be handed down on the way to the
	// containers' groups; runtimes do that too, but not all of them.
	if err := cgroup.Delegate(s.hs, s.group, "memory", "pids", "cpu"); err != nil && !errors.Is(err, cgroup.ErrWithheld) {
		return err
	}
	s.pool, err = lane.NewPool(lane.Options{Lanes: s.env.Lanes, Mounts: s.mounts})
	return err
}

// Prepare implements subject.Session.
func (s *session) Prepare(_ context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	tasks := make([]batch.Task, 0, len(lanes))
	for i, n := range lanes {
		task, err := s.task(op, n, i < stateChecks, len(lanes) == 1)
		if err != nil {
			return nil, fmt.Errorf("target %s: %s: %w", s.name, op, err)
		}
		tasks = append(tasks, task)
	}
	return batch.PrepareOrders(s.pool, tasks)
}

// task is one operation on one lane. ask: the runtime's state is looked at
// afterwards; alone: nothing else runs then, so that the answer is a stamp.
func (s *session) task(op subject.Op, n int, ask, alone bool) (batch.Task, error) {
	c := &s.containers[n]
	task := batch.Task{Lane: n, SharedClock: !s.flavour.guestClock}
	o := &task.Order
	o.Kind, o.Timeout = lane.Exec, s.env.Timeout
	want := ""
	switch op {
	case subject.Create, subject.Run:
		if err := s.newContainer(c, n); err != nil {
			return task, err
		}
		o.Args, want = s.args(s.state, "create", "--bundle", c.dir, "--pid-file", c.pidFile(), c.id), "created"
		if op == subject.Run {
			o.Args, want = s.args(s.state, "run", "--detach", "--bundle", c.dir, "--pid-file", c.pidFile(), c.id), "running"
			o.Need, o.Token, o.Keep = lane.NeedReady, c.id, engine.Said(s.env, n)
		}
	case subject.Start:
		o.Args, want = s.args(s.state, "start", c.id), "running"
		o.Need, o.Token, o.Keep = lane.NeedReady, c.id, engine.Said(s.env, n)
	case subject.Stop:
		o.Args, want = s.args(s.state, "kill", c.id, s.env.Workload.StopSignal()), "stopped"
		o.Need, o.Watch = lane.NeedExit, c.pid
	case subject.Remove:
		o.Args = s.args(s.state, "delete", c.id)
	default:
		return task, subject.ErrUnsupported
	}
	task.Confirm = func(ctx context.Context, r *lane.Result, sample *record.Sample) *record.Failure {
		f := s.confirm(ctx, op, n, r, sample, want, ask, alone)
		if op == subject.Run || op == subject.Start {
			if task.SharedClock {
				s.Check(c.pid, sample)
			}
			if early := engine.EarlyEnd(ctx, s, s.env, n, c.pid); early != nil && (f == nil || f.Kind == record.FailState) {
				return early
			}
		}
		return f
	}
	return task, nil
}

func (s *session) newContainer(c *container, n int) error {
	c.id = fmt.Sprintf("tare-%s-%d-%d", s.env.RunID, n, s.made)
	s.made++
	c.pid = 0
	c.dir = filepath.Join(s.env.Dir, "bundles", c.id)
	group := "/" + filepath.Join(s.group, c.id)
	c.root = s.root(n)
	spec := bundle(s.spec, c.root, group, c.id, s.env.Limits, cgroup.ModeOf(s.hs) == cgroup.V2)
	s.store(spec, n)
	if cargo := s.env.Workload.Cargo; cargo != nil {
		spec.Process.Args = append([]string{probe.Name}, s.env.Workload.Args(c.id)...)
		load(spec.Process, cargo)
	}
	if s.networks != nil {
		var path string
		var err error
		if path, c.address, err = s.networks.For(strconv.Itoa(n)); err != nil {
			return err
		}
		netns.Join(spec, path)
	}
	return writeBundle(c.dir, spec)
}

// confirm looks whether what the runtime reported is so.
func (s *session) confirm(ctx context.Context, op subject.Op, n int, r *lane.Result, sample *record.Sample, want string, ask, alone bool) *record.Failure {
	c := &s.containers[n]
	switch op {
	case subject.Create, subject.Run:
		pid, err := s.process(c)
		// The workload ran: a run that forks and returns writes its pid file later.
		for end, busy := time.Now().Add(s.patience()), op == subject.Run; busy && errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil && time.Now().Before(end); pid, err = s.process(c) {
			time.Sleep(10 * time.Millisecond)
			busy = s.underWay(c)
		}
		if err != nil {
			return &record.Failure{Kind: record.FailState, Detail: fmt.Sprintf("reported success, but there is no container process: %v", err), Output: engine.LastOutput(s.env, n)}
		}
		c.pid = pid
	case subject.Stop:
		c.pid = 0
		if f := s.env.Workload.Forgive(batch.EndedAsTold(r, s.env.Workload.Signal())); f != nil {
			return f
		}
		ask = ask || s.flavour.lagsState // or it could not be removed yet
	case subject.Remove:
		return s.removed(ctx, n, ask)
	}
	if !ask {
		return nil
	}
	seen, failure := s.awaitState(ctx, n, want)
	if failure == nil && alone {
		sample.Running = seen
	}
	if failure != nil && failure.Output == "" {
		failure.Output = engine.LastOutput(s.env, n)
	}
	return failure
}

// underWay reports whether a process outside of the container has its id in an argument: a
// runtime that still works on it.
func (s *session) underWay(c *container) bool {
	return slices.ContainsFunc(procs.Programs(), func(p procs.Found) bool {
		return slices.ContainsFunc(p.Args, func(arg string) bool { return slices.Contains(procs.Parts(arg), c.id) }) && !cgroup.Holds(filepath.Join(s.group, c.id), p.Pid)
	})
}

// process is the container's first process, by the runtime's pid file. The file
// is foreign: what it names is watched and killed only if it is in the
// container's own cgroup.
func (s *session) process(c *container) (int, error) {
	pid, err := readPid(c.pidFile())
	if err != nil {
		return 0, err
	}
	if !cgroup.Holds(filepath.Join(s.group, c.id), pid) {
		return 0, fmt.Errorf("process %d of the runtime's pid file is not in the container's cgroup /%s", pid, filepath.Join(s.group, c.id))
	}
	return pid, nil
}

// removed makes sure that the container is gone.
func (s *session) removed(ctx context.Context, n int, ask bool) *record.Failure {
	c := &s.containers[n]
	if ask {
		o := lane.Order{Kind: lane.Exec, Args: s.args(s.state, "state", c.id), Timeout: s.env.Timeout}
		r, err := s.ask(ctx, n, o)
		if err != nil {
			return batch.Broken(err)
		}
		if r.Err == nil && r.Status == 0 {
			return &record.Failure{Kind: record.FailState, Detail: "reported success, but state still knows the container", Output: r.Stdout}
		}
	}
	c.id = ""
	return batch.Broken(errors.Join(mounts.RemoveTree(c.dir), s.clear(n)))
}

// ask asks the runtime something. Where a program of the user's own may say anything at any
// time into the pipe of its lane, that is done beside the lane.
func (s *session) ask(ctx context.Context, n int, o lane.Order) (lane.Result, error) {
	if s.env.Workload.Cargo == nil {
		return s.pool.Do(ctx, n, o)
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	ended, err := child.Run(ctx, child.Command{Args: o.Args, Env: lane.Environment(nil), Enter: s.enter()})
	return lane.Result{Returned: machine.Now(), Stdout: ended.Output, Stderr: ended.Stderr, Status: unix.WaitStatus(ended.Exit << 8)}, err
}

// patience is for how long something is awaited that the runtime reported.
func (s *session) patience() time.Duration { return min(s.env.Timeout, 10*time.Second) }

// awaitState asks the runtime for the container's status until it is the
// wanted one, and returns when the answer came. Most runtimes say it at once.
func (s *session) awaitState(ctx context.Context, n int, want string) (int64, *record.Failure) {
	c := &s.containers[n]
	o := lane.Order{Kind: lane.Exec, Args: s.args(s.state, "state", c.id), Timeout: s.env.Timeout}
	deadline := time.Now().Add(s.patience())
	for {
		r, err := s.ask(ctx, n, o)
		if err != nil {
			return 0, batch.Broken(err)
		}
		if f := batch.Failed(o, &r); f != nil {
			f.Detail = "state: " + f.Detail
			if f.Kind == record.FailExit {
				f.Kind = record.FailState
			}
			return 0, f
		}
		st, err := parseState(r.Stdout, c.id)
		if err != nil {
			return 0, &record.Failure{Kind: record.FailState, Detail: err.Error(), Command: o.String(), Output: r.Stdout}
		}
		if st.Status == want {
			return r.Returned, nil
		}
		if ctx.Err() != nil {
			return 0, &record.Failure{Kind: record.FailInterrupted, Detail: "interrupted while waiting for the state " + want}
		}
		if over := st.Status == "stopped" && want == "running"; over || time.Now().After(deadline) {
			return 0, &record.Failure{Kind: record.FailState, Detail: fmt.Sprintf("reported success, but state says %q, not %q", st.Status, want), Command: o.String()}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Discard implements subject.Session.
func (s *session) Discard(ctx context.Context, lanes []int) error {
	var left []int
	var orders []lane.Order
	for _, n := range lanes {
		c := &s.containers[n]
		if c.id == "" {
			continue
		}
		// Asked again: it may have come to life after all, or be gone.
		if pid, err := readPid(c.pidFile()); err == nil {
			_ = cgroup.Kill(filepath.Join(s.group, c.id), pid) // or it is not the container's
		}
		left = append(left, n)
		orders = append(orders, lane.Order{Kind: lane.Exec, Args: s.args(s.state, "delete", "--force", c.id), Timeout: s.env.Timeout})
	}
	if len(left) == 0 {
		return nil
	}
	b, err := s.pool.Prepare(left, orders)
	if err == nil {
		_, _, err = b.Start(ctx)
	}
	errs := []error{err}
	for _, n := range left {
		// Whatever the runtime made of that: no process and no cgroup stays.
		c := &s.containers[n]
		errs = append(errs, cgroup.Remove(s.hs, filepath.Join(s.group, c.id)), mounts.RemoveTree(c.dir), s.clear(n))
		c.id, c.pid = "", 0
	}
	return errors.Join(errs...)
}

// Close implements subject.Session.
func (s *session) Close(context.Context) error {
	if s.pool != nil {
		s.pool.Close()
	}
	if s.mounts != nil {
		s.mounts.Close()
	}
	return errors.Join(cgroup.Remove(s.hs, s.group), s.networks.Close(), s.volumes.Close(), mounts.RemoveTree(s.env.StateDir), mounts.RemoveTree(s.env.Dir))
}
