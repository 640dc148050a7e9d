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

// stateChecks is the number of lanes of a batch whose state is queried. One command per lane
// would take as long as the batch; the pid file, the probe's report and its exit confirm every
// lane anyway.
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
	group      string // the target's cgroup, parent of those of the containers
	mounts     *os.File
	networks   *netns.Networks // nil if tare can enter the containers' own networks
	places     engine.Places
	pool       *lane.Pool
	containers []container
	made       int
	executed   atomic.Int64 // number of execs, for the names of their files
}

// container is what a lane holds.
type container struct {
	id      string // "" for none
	dir     string // bundle and pid file
	root    string // its root file system
	address string // in the network that tare made for it; "" for the runtime's network
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
		s.Target = s.withNetwork()
		s.networks = netns.New(s.env.RunID)
	}
	// On v2 the controllers have to be enabled in all ancestors, which not all runtimes do.
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

// task returns an operation on a lane. ask requests a query of the runtime's state afterwards.
// alone means that no other lane runs, so that the time of the answer is a stamp.
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
	c.root = engine.Root(s.env, n)
	spec := bundle(s.spec, c.root, group, c.id, s.env.Limits, cgroup.ModeOf(s.hs) == cgroup.V2)
	s.store(spec, n)
	if cargo := s.env.Workload.Cargo; cargo != nil {
		spec.Process.Args = append([]string{probe.Name}, s.env.Workload.Args(c.id)...)
		setProgram(spec.Process, cargo)
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

// confirm checks that the operation did what the runtime reported.
func (s *session) confirm(ctx context.Context, op subject.Op, n int, r *lane.Result, sample *record.Sample, want string, ask, alone bool) *record.Failure {
	c := &s.containers[n]
	switch op {
	case subject.Create, subject.Run:
		pid, err := s.process(c)
		// If the workload ran, a runtime that forks and returns writes its pid file later. Wait as
		// long as such a process exists. One look without it is not enough: a process has no
		// arguments while it executes another program.
		for end, idle := time.Now().Add(s.patience()), 0; op == subject.Run && idle < 2 && errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil && time.Now().Before(end); pid, err = s.process(c) {
			time.Sleep(10 * time.Millisecond)
			if idle++; s.underWay(c) {
				idle = 0
			}
		}
		if err != nil {
			return &record.Failure{Kind: record.FailState, Detail: fmt.Sprintf("reported success, but without a container process: %v", err), Output: engine.LastOutput(s.env, n)}
		}
		c.pid = pid
	case subject.Stop:
		c.pid = 0
		if f := s.env.Workload.Forgive(batch.CheckEnd(r, s.env.Workload.Signal())); f != nil {
			return f
		}
		ask = ask || s.flavour.lagsState // a lagging state may prevent the removal
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

// underWay reports whether a process outside of the container, such as the runtime, has its id in an
// argument.
func (s *session) underWay(c *container) bool {
	return slices.ContainsFunc(procs.Programs(), func(p procs.Found) bool {
		return slices.ContainsFunc(p.Args, func(arg string) bool { return slices.Contains(procs.Parts(arg), c.id) }) && !cgroup.Holds(filepath.Join(s.group, c.id), p.Pid)
	})
}

// process returns the container's first process, from the runtime's pid file. The file is
// foreign: its process has to be in the container's cgroup, before it is watched or killed.
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

// removed checks that the container is gone.
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

// ask queries the runtime. A user's program may write into the pipe of its lane at any time; then a
// separate process is used.
func (s *session) ask(ctx context.Context, n int, o lane.Order) (lane.Result, error) {
	if s.env.Workload.Cargo == nil {
		return s.pool.Do(ctx, n, o)
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	ended, err := child.Run(ctx, child.Command{Args: o.Args, Env: lane.Environment(nil), Enter: s.enter()})
	return lane.Result{Returned: machine.Now(), Stdout: ended.Output, Stderr: ended.Stderr, Status: unix.WaitStatus(ended.Exit << 8)}, err
}

// patience bounds the wait for an effect that the runtime reported.
func (s *session) patience() time.Duration { return min(s.env.Timeout, 10*time.Second) }

// awaitState queries the container's status until it is the expected one, and returns the time
// of that answer. Most runtimes report it at once.
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
			return 0, &record.Failure{Kind: record.FailState, Detail: fmt.Sprintf("reported success, but state says %q, expected %q", st.Status, want), Command: o.String()}
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
		// Read again: the container may have started after all, or ended.
		if pid, err := readPid(c.pidFile()); err == nil {
			_ = cgroup.Kill(filepath.Join(s.group, c.id), pid) // fails for a foreign process
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
		// Whatever the runtime did, no process and no cgroup remains.
		c := &s.containers[n]
		errs = append(errs, cgroup.Remove(s.hs, filepath.Join(s.group, c.id)), mounts.RemoveTree(c.dir), s.clear(n))
		c.id, c.pid = "", 0
	}
	return errors.Join(errs...)
}

// Close implements subject.Session.
func (s *session) Close(context.Context) error {
	s.pool.Close()
	s.mounts.Close() // may be nil
	return errors.Join(cgroup.Remove(s.hs, s.group), s.networks.Close(), s.places.Close(), mounts.RemoveTree(s.env.StateDir), mounts.RemoveTree(s.env.Dir))
}
