// Package host weighs the workload as a plain process: the zero of every
// scale. It has nothing to create and nothing to remove, so its operations are
// start, stop and run, and run is the same as start.
package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine"
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
	start := record.Operation{
		Command: "fork and exec of PROBE ID",
		Done:    record.StampReturned,
		Means:   "the child has exec'd the workload",
	}
	absent := record.Operation{Absent: "a plain process has nothing to create or remove"}
	return record.Target{
		Name: Name, Kind: "host", Clock: "host",
		Operations: map[string]record.Operation{
			string(subject.Create): absent,
			string(subject.Start):  start,
			string(subject.Stop): {
				Command: "kill(PID, SIGTERM)", Done: record.StampExited, Means: "SIGTERM was sent and the process has exited",
			},
			string(subject.Remove): absent,
			string(subject.Run):    start,
		},
	}
}

// Open implements subject.Target.
func (Target) Open(_ context.Context, env subject.Env) (subject.Session, error) {
	s := &session{env: env, pids: make([]int, env.Lanes), more: make([][]int, env.Lanes)}
	err := probe.Rootfs(env.Dir)
	if err == nil {
		err = s.openStorage()
	}
	if err == nil {
		s.pool, err = lane.NewPool(lane.Options{Lanes: env.Lanes})
	}
	if err != nil {
		return nil, fmt.Errorf("target host: %w", errors.Join(err, s.Close(context.Background())))
	}
	return s, nil
}

type session struct {
	env     subject.Env
	pool    *lane.Pool
	volumes *engine.Volumes
	device  engine.Device
	pids    []int // of each lane's workload, 0 where there is none
	made    int

	executing sync.Mutex
	more      [][]int // the commands that run now, by lane
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
				Kind: lane.Spawn, Args: []string{filepath.Join(s.env.Dir, probe.Name), token},
				Need: lane.NeedReady, Token: token, Timeout: s.env.Timeout,
			}
			task.Seen = func(r *lane.Result) { s.pids[n] = r.Pid }
		case subject.Stop:
			task.Order = lane.Order{Kind: lane.Kill, Watch: s.pids[n], Need: lane.NeedExit, Timeout: s.env.Timeout}
			task.Confirm = func(_ context.Context, r *lane.Result, _ *record.Sample) *record.Failure {
				s.pids[n] = 0
				if f := batch.EndedAsTold(r); f != nil {
					return f
				}
				if err := s.clear(n); err != nil {
					return &record.Failure{Kind: record.FailError, Detail: err.Error()}
				}
				return nil
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
		if s.pids[n] == 0 {
			continue
		}
		// The workload is the lane's child: only the lane can end and reap it
		// without mistaking another process for it.
		_, err := s.pool.Do(ctx, n, lane.Order{Kind: lane.Kill, Signal: unix.SIGKILL, Watch: s.pids[n], Need: lane.NeedExit, Timeout: s.env.Timeout})
		errs = append(errs, err, s.clear(n))
		s.pids[n] = 0
	}
	return errors.Join(errs...)
}

// all lists every lane.
func (s *session) all() []int {
	out := make([]int, len(s.pids))
	for i := range out {
		out[i] = i
	}
	return out
}

// Close implements subject.Session.
func (s *session) Close(ctx context.Context) error {
	err := s.Discard(ctx, s.all())
	if s.pool != nil {
		s.pool.Close()
	}
	return errors.Join(err, s.volumes.Close(), mounts.RemoveTree(s.env.Dir))
}
