package kubernetes

import (
	"context"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

// objects returns the target's RuntimeClass, and the node's allocatable resources if it is this
// machine.
func (t *Target) objects() *record.Kubernetes {
	out := new(record.Kubernetes)
	if c := t.class; c != nil {
		out.RuntimeClass, out.Handler = c.Name, c.Handler
		if c.Overhead != nil {
			out.Overhead = amounts(c.Overhead.PodFixed)
		}
		if c.Scheduling != nil {
			text, _ := json.Marshal(c.Scheduling)
			out.Scheduling = string(text)
		}
	}
	if t.here && len(t.nodes) == 1 {
		out.Allocatable = amounts(t.nodes[0].Status.Allocatable)
	}
	return out
}

func amounts(l corev1.ResourceList) *record.Amounts {
	return &record.Amounts{CPU: max(l.Cpu().MilliValue(), 0), Memory: max(l.Memory().Value(), 0)}
}

// Sandboxes implements subject.Sandboxed.
func (s *session) Sandboxes(ctx context.Context) ([]subject.Sandbox, error) {
	out, err := s.Session.Sandboxes(ctx)
	if err == nil && s.node == nil {
		err = errors.New("the engine of the pods' node is not reachable, and only it knows their processes: give its socket with --node-cri")
	}
	if s.node != nil {
		err = errors.Join(err, s.node.Complete(ctx, out))
	}
	return out, engine.Failed(s.name, "query the sandboxes", err)
}

// Exec implements subject.Executor by the node's engine, without load on the cluster.
func (s *session) Exec(ctx context.Context, n int, args []string) (subject.Executed, error) {
	c, err := s.Inside(n, args)
	if err == nil && s.node == nil {
		err = subject.ErrUnsupported
	}
	if err != nil {
		return subject.Executed{Exit: -1}, err
	}
	return s.node.Exec(ctx, c, s.clock() == "guest", args)
}

// PodStates implements subject.PodReporter.
func (s *session) PodStates(ctx context.Context) (out []record.Pod, err error) {
	pods, err := s.pods(ctx)
	for i := range pods {
		if lane := s.Lane(pods[i].Name); lane >= 0 {
			out = append(out, podState(&pods[i], lane))
		}
	}
	return out, err
}

// podState reads a pod's status. A kubelet evicts pods for lack of memory, disk or processes;
// authorised users evict through the API.
func podState(p *corev1.Pod, lane int) record.Pod {
	out := record.Pod{Lane: lane, Evicted: p.Status.Reason == "Evicted" || disrupted(p) != ""}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		out.Restarts += int(max(c.RestartCount, 0))
		if now, last := c.State.Terminated, c.LastTerminationState.Terminated; now != nil && now.Reason == oomKilled || last != nil && last.Reason == oomKilled {
			out.OOMKilled++
		}
	}
	return out
}

// oomKilled is a kubelet's reason for a container that the kernel killed.
const oomKilled = "OOMKilled"
