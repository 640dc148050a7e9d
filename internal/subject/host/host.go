// Package host measures the workload as a plain process, the zero of every scale. There is
// nothing to create or remove, so its operations are start, stop and run, which equals start.
package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Name is the target's name.
const Name = "host"

// Target is the host itself.
type Target struct{}

// New returns the host as a target. It needs no privilege.
func New() Target { return Target{} }

// Info implements subject.Target.
func (Target) Info() record.Target {
	start := record.Operation{Command: "fork and exec of the workload", Done: record.StampReturned, Means: "the child has exec'd the workload"}
	absent := record.Operation{Absent: "a plain process has nothing to create or remove"}
	return record.Target{
		Name: Name, Kind: "host", Clock: "host",
		Operations: map[string]record.Operation{
			string(subject.Create): absent,
			string(subject.Start):  start,
			string(subject.Stop):   {Command: "kill(PID, STOP SIGNAL)", Done: record.StampExited, Means: "the stop signal was sent and the process has exited"},
			string(subject.Remove): absent,
			string(subject.Run):    start,
		},
	}
}

// Refuses implements subject.Refuser.
func (Target) Refuses(w *setting.Workload) *subject.Unavailable {
	if len(w.OnHost()) > 0 {
		return nil
	}
	return &subject.Unavailable{Name: Name, Reason: "an image does not run as a plain process", Advice: "give a command: --host-command 'PROGRAM ARG'"}
}

// Open implements subject.Target.
func (t Target) Open(_ context.Context, env subject.Env) (subject.Session, error) {
	if c := env.Workload.Cargo; c != nil && c.Host == nil {
		return nil, fmt.Errorf("%w: %w", subject.ErrUnsupported, t.Refuses(new(setting.Workload)))
	}
	s := &session{env: env, pids: make([]int, env.Lanes), more: make([][]int, env.Lanes)}
	err := probe.Rootfs(env.Dir)
	if err == nil {
		err = s.openStorage()
	}
	if err == nil {
		o := lane.Options{Lanes: env.Lanes}
		if c := env.Workload.Cargo; c != nil {
			// A user's command has no path of the run, by which other processes of the run are found.
			o.Env = append(slices.Clone(c.HostEnv), procs.RunVariable+"="+env.RunID)
		}
		s.pool, err = lane.NewPool(o)
	}
	if err != nil {
		return nil, fmt.Errorf("target host: %w", errors.Join(err, s.Close(context.Background())))
	}
	return s, nil
}

type session struct {
	env    subject.Env
	pool   *lane.Pool
	places engine.Places
	pids   []int // by lane; 0 for none
	made   int

	executing sync.Mutex
	more      [][]int // running execs, by lane
}

// Prepare implements subject.Session.
func (s *session) Prepare(_ context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	tasks := make([]batch.Task, 0, len(lanes))
	for _, n := range lanes {
		task := batch.Task{Lane: n, SharedClock: true}
		switch op {
		case subject.Start, subject.Run:
			token := fmt.Sprintf("%s-host-%d-%d", s.env.RunID, n, s.made)
			s.made++
			task.Order = lane.Order{
				Kind: lane.Spawn, Args: s.args(token),
				Need: lane.NeedReady, Token: token, Timeout: s.env.Timeout, Keep: engine.Said(s.env, n),
			}
			task.Seen = func(r *lane.Result) { s.pids[n] = r.Pid }
			task.Confirm = func(ctx context.Context, _ *lane.Result, _ *record.Sample) *record.Failure {
				return engine.EarlyEnd(ctx, s, s.env, n, s.pids[n])
			}
		case subject.Stop:
			task.Order = lane.Order{Kind: lane.Kill, Watch: s.pids[n], Signal: s.env.Workload.Signal(), Need: lane.NeedExit, Timeout: s.env.Timeout}
			task.Confirm = func(_ context.Context, r *lane.Result, _ *record.Sample) *record.Failure {
				s.pids[n] = 0
				if f := s.env.Workload.Forgive(batch.CheckEnd(r, s.env.Workload.Signal())); f != nil {
					return f
				}
				return batch.Broken(s.clear(n))
			}
		default:
			return nil, fmt.Errorf("target host: %s: %w: a plain process has nothing to create or remove", op, subject.ErrUnsupported)
		}
		tasks = append(tasks, task)
	}
	return batch.PrepareOrders(s.pool, tasks)
}

// Discard implements subject.Session.
func (s *session) Discard(ctx context.Context, lanes []int) error {
	var errs []error
	for _, n := range lanes {
		errs = append(errs, s.end(ctx, n))
	}
	return errors.Join(errs...)
}

// end ends the workload on a lane, if there is one. Only the lane, its parent, can kill and
// reap it without the risk of a reused pid.
func (s *session) end(ctx context.Context, n int) error {
	if s.pids[n] == 0 {
		return nil
	}
	_, err := s.pool.Do(ctx, n, lane.Order{Kind: lane.Kill, Signal: unix.SIGKILL, Watch: s.pids[n], Need: lane.NeedExit, Timeout: s.env.Timeout})
	s.pids[n] = 0
	return errors.Join(err, s.clear(n))
}

// args returns the command of a workload.
func (s *session) args(token string) []string {
	own := filepath.Join(s.env.Dir, probe.Name)
	c := s.env.Workload.Cargo
	if c == nil {
		return []string{own, token}
	}
	args := append([]string{own, token}, c.Host...)
	if args[2] == probe.Name { // tare's probe, as in an image
		args[2] = own
	}
	return args
}

// Close implements subject.Session.
func (s *session) Close(ctx context.Context) error {
	var errs []error
	for n := range s.pids {
		errs = append(errs, s.end(ctx, n))
	}
	s.pool.Close()
	return errors.Join(append(errs, s.places.Close(), mounts.RemoveTree(s.env.Dir))...)
}
