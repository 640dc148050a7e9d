package cri

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

// settle looks whether what was reported is so: one question for all lanes, and
// one for each container that was started or stopped.
func (s *session) settle(ctx context.Context, op subject.Op, samples []record.Sample) {
	for i := range samples {
		if f := samples[i].Failure; f != nil && (f.Kind == record.FailTimeout || f.Kind == record.FailInterrupted) {
			s.owed = append(s.owed, s.held[samples[i].Lane].name)
		}
	}
	states, err := s.states(ctx, op)
	// containerd replies to a stop when the process is gone, and takes note of
	// that for its own list a moment later.
	for late := time.Now().Add(lag); err == nil && s.behind(op, samples, states) && time.Now().Before(late) && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
		states, err = s.states(ctx, op)
	}
	until := time.Now().Add(min(s.env.Timeout, patience))
	_ = engine.Each(len(samples), func(i int) error {
		switch sample := &samples[i]; {
		case sample.Failure != nil:
		case err != nil:
			sample.Failure = &record.Failure{Kind: record.FailState, Detail: fmt.Sprintf("its state could not be asked for: %v", err)}
		default:
			sample.Failure = s.check(ctx, op, sample, states, until)
		}
		return nil
	})
}

// lag is how long an engine's list may be behind its replies.
const lag = 2 * time.Second

// behind tells whether the list does not show yet what was reported to have
// ended.
func (s *session) behind(op subject.Op, samples []record.Sample, states map[string]string) bool {
	for i := range samples {
		if samples[i].Failure != nil {
			continue
		}
		h := s.held[samples[i].Lane]
		state := ""
		switch op {
		case subject.Stop, subject.Remove:
			state = states[h.container]
		case subject.StopPod, subject.RemovePod:
			state = states[h.pod]
		}
		if state != "" && state != wanted[op] {
			return true
		}
	}
	return false
}

// states are those of all the run's pods, or containers, by id.
func (s *session) states(ctx context.Context, op subject.Op) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	of := map[string]string{engine.RunLabel: s.env.RunID}
	states := map[string]string{}
	if op == subject.RunPod || op == subject.StopPod || op == subject.RemovePod {
		list, err := s.conn.runtime.ListPodSandbox(ctx, &api.ListPodSandboxRequest{Filter: &api.PodSandboxFilter{LabelSelector: of}})
		for _, p := range list.GetItems() {
			states[p.Id] = p.State.String()
		}
		return states, plain(ctx, "ListPodSandbox", err)
	}
	list, err := s.conn.runtime.ListContainers(ctx, &api.ListContainersRequest{Filter: &api.ContainerFilter{LabelSelector: of}})
	for _, c := range list.GetContainers() {
		states[c.Id] = c.State.String()
	}
	return states, plain(ctx, "ListContainers", err)
}

// wanted are the states in which operations leave what they act on.
var wanted = map[subject.Op]string{
	subject.RunPod: api.PodSandboxState_SANDBOX_READY.String(), subject.StopPod: api.PodSandboxState_SANDBOX_NOTREADY.String(),
	subject.Create: api.ContainerState_CONTAINER_CREATED.String(), subject.Start: api.ContainerState_CONTAINER_RUNNING.String(),
	subject.Run: api.ContainerState_CONTAINER_RUNNING.String(), subject.Stop: api.ContainerState_CONTAINER_EXITED.String(),
}

// check compares what an operation should have made of a lane with the engine's
// own state.
func (s *session) check(ctx context.Context, op subject.Op, sample *record.Sample, states map[string]string, until time.Time) *record.Failure {
	h := s.held[sample.Lane]
	what, id := "container", h.container
	if op == subject.RunPod || op == subject.StopPod || op == subject.RemovePod {
		what, id = "pod", h.pod
	}
	if id == "" {
		return engine.Contradicted("it gave no id of the %s", what)
	}
	state, there := states[id]
	switch want := wanted[op]; {
	case want == "" && there:
		return engine.Contradicted("the engine still knows the %s %s", what, id)
	case want != "" && !there:
		return engine.Contradicted("the engine knows no %s %s", what, id)
	case state != want:
		return engine.Contradicted("the %s is %s, not %s", what, state, want)
	}
	switch op {
	case subject.Start, subject.Run:
		if f := s.alive(ctx, h); f != nil {
			return f
		}
		return s.heard(ctx, h.token, sample, until)
	case subject.Stop:
		return s.ended(ctx, h)
	case subject.Remove:
		os.Remove(s.logFile(h.token))
		s.held[sample.Lane] = &held{lane: h.lane, name: h.name, config: h.config, pod: h.pod}
	case subject.RemovePod:
		s.held[sample.Lane] = new(held)
		_ = s.tmpfses.unmount(h.name) // else with the session, as is the group
		_ = cgroup.Remove(s.hs, s.podGroup(h.name))
	}
	return nil
}

// status asks for one container.
func (s *session) status(ctx context.Context, id string, verbose bool) (*api.ContainerStatusResponse, *record.Failure) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reply, err := s.conn.runtime.ContainerStatus(ctx, &api.ContainerStatusRequest{ContainerId: id, Verbose: verbose})
	if err != nil {
		return nil, &record.Failure{Kind: record.FailState, Detail: plain(ctx, "ContainerStatus", err).Error()}
	}
	return reply, nil
}

// alive takes note of a container's process, and fails if that is not there.
// Not every engine tells it.
func (s *session) alive(ctx context.Context, h *held) *record.Failure {
	reply, failure := s.status(ctx, h.container, true)
	if failure != nil {
		return failure
	}
	pid := pidIn(reply.Info)
	if pid == 0 {
		return nil
	}
	if unix.Kill(pid, 0) != nil {
		return engine.Contradicted("its process %d is not there", pid)
	}
	h.pid = pid
	return nil
}

// ended looks how a container did.
func (s *session) ended(ctx context.Context, h *held) *record.Failure {
	reply, failure := s.status(ctx, h.container, false)
	if failure != nil {
		return failure
	}
	h.pid = 0
	return engine.EndedWith(int(reply.GetStatus().GetExitCode()), "")
}

// heard waits for the workload's line in its log.
func (s *session) heard(ctx context.Context, token string, sample *record.Sample, until time.Time) *record.Failure {
	for {
		// With cri-dockerd it is a link to one of dockerd's.
		path, _ := filepath.EvalSymlinks(s.logFile(token))
		log, _ := engine.ReadLog(path)
		said := engine.ParseLog(log)
		if _, ok := lane.ProbeTime(said, token); ok || time.Now().After(until) || ctx.Err() != nil {
			return batch.FirstFromLog(sample, said, token)
		}
		time.Sleep(time.Millisecond)
	}
}

func (s *session) logFile(token string) string { return filepath.Join(s.logs, logName(token)) }
