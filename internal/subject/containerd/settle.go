package containerd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	types "github.com/containerd/containerd/api/types/task"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

// settle looks whether what was reported is so: one question for all lanes.
func (s *session) settle(ctx context.Context, op subject.Op, samples []record.Sample) {
	for i := range samples {
		if f := samples[i].Failure; f != nil && (f.Kind == record.FailTimeout || f.Kind == record.FailInterrupted) {
			s.owed = append(s.owed, s.containers[samples[i].Lane].id)
		}
	}
	if op == subject.Remove {
		s.settleRemoved(ctx, samples)
		return
	}
	ask, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := s.client.TaskService().List(ask, &tasks.ListTasksRequest{})
	if err != nil {
		fail(samples, record.FailState, fmt.Sprintf("its state could not be asked for: Tasks.List: %v", errgrpc.ToNative(err)))
		return
	}
	states := make(map[string]*types.Process, len(list.Tasks))
	for _, p := range list.Tasks {
		states[p.ID] = p
	}
	late := time.Now().Add(min(s.env.Timeout, patience))
	for i := range samples {
		sample := &samples[i]
		if sample.Failure != nil {
			continue
		}
		c := s.containers[sample.Lane]
		sample.Failure = c.check(op, states[c.id])
		if sample.Failure == nil && (op == subject.Start || op == subject.Run) {
			sample.Failure = s.heard(ctx, c.id, sample, late)
		}
	}
}

// check compares what an operation should have made of a container with its
// state, and takes note of its process.
func (c *container) check(op subject.Op, state *types.Process) *record.Failure {
	contradiction := func(format string, arguments ...any) *record.Failure {
		return &record.Failure{Kind: record.FailState, Detail: "reported success, but " + fmt.Sprintf(format, arguments...)}
	}
	if state == nil {
		return contradiction("containerd knows no task %s", c.id)
	}
	want := map[subject.Op]types.Status{
		subject.Create: types.Status_CREATED, subject.Start: types.Status_RUNNING,
		subject.Run: types.Status_RUNNING, subject.Stop: types.Status_STOPPED,
	}[op]
	if state.Status != want {
		return contradiction("its task is %s, not %s", strings.ToLower(state.Status.String()), strings.ToLower(want.String()))
	}
	if op == subject.Stop {
		c.pid = 0
		return endedWith(c.code)
	}
	if c.pid = int(state.Pid); c.pid <= 1 || unix.Kill(c.pid, 0) != nil {
		pid := c.pid
		c.pid = 0
		return contradiction("its process %d is not there", pid)
	}
	return nil
}

// endedWith is nil for 0, with which the probe ends on SIGTERM.
func endedWith(code uint32) *record.Failure {
	switch {
	case code == 0:
		return nil
	case code > 128 && code < 128+65:
		return &record.Failure{Kind: record.FailWorkload, Exit: int(code),
			Detail: fmt.Sprintf("the workload was killed by signal %d instead of ending on SIGTERM", code-128)}
	}
	return &record.Failure{Kind: record.FailWorkload, Exit: int(code), Detail: fmt.Sprintf("the workload ended with status %d instead of 0", code)}
}

// heard waits for the workload's line in its output, which the shim copies.
func (s *session) heard(ctx context.Context, id string, sample *record.Sample, late time.Time) *record.Failure {
	for {
		log := readLog(s.logFile(id))
		if _, ok := lane.ProbeTime(log, id); ok || time.Now().After(late) || ctx.Err() != nil {
			return batch.FirstFromLog(sample, log, id)
		}
		time.Sleep(time.Millisecond)
	}
}

// readLog reads the beginning of an output.
func readLog(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, 16<<10))
	return string(b)
}

func (s *session) settleRemoved(ctx context.Context, samples []record.Sample) {
	ask, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	known, err := s.client.ContainerService().List(ask, fmt.Sprintf("labels.%q==%q", engine.RunLabel, s.env.RunID))
	if err != nil {
		fail(samples, record.FailState, fmt.Sprintf("its absence could not be asked for: Containers.List: %v", err))
		return
	}
	there := make(map[string]bool, len(known))
	for _, c := range known {
		there[c.ID] = true
	}
	for i := range samples {
		c := s.containers[samples[i].Lane]
		switch {
		case samples[i].Failure != nil:
		case there[c.id]:
			samples[i].Failure = &record.Failure{Kind: record.FailState, Detail: "reported success, but containerd still knows the container " + c.id}
		default:
			os.Remove(s.logFile(c.id))
			s.containers[samples[i].Lane] = new(container)
		}
	}
}

// fail gives every lane that did not fail the same failure.
func fail(samples []record.Sample, kind, detail string) {
	for i := range samples {
		if samples[i].Failure == nil {
			samples[i].Failure = &record.Failure{Kind: kind, Detail: detail}
		}
	}
}
