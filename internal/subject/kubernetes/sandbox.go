package kubernetes

import (
	"context"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// objects are what the cluster says of the target: its RuntimeClass, and what the node
// gives to pods where that is this machine.
func (t *Target) objects() *record.Kubernetes {
	out := new(record.Kubernetes)
	if c := t.class; c != nil {
		out.RuntimeClass, out.Handler = c.Name, c.Handler
		if c.Overhead != nil {
			out.Overhead = amounts(c.Overhead.PodFixed)
		}
		if c.Scheduling != nil {
			text, _ := json.Marshal(c.Scheduling) // of strings and numbers
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
		err = errors.New("the engine of the pods' node is not reached from here, which alone knows their processes: name its socket by --node-cri")
	}
	if s.node != nil {
		err = errors.Join(err, s.node.Complete(ctx, out))
	}
	return out, s.failed("ask for the sandboxes", err)
}

// Exec implements subject.Executor, by the node's engine, so that nobody but that and
// the container has the work of it.
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

// Became implements subject.Tended.
func (s *session) Became(ctx context.Context) (out []record.Pod, err error) {
	pods, err := s.pods(ctx)
	for i := range pods {
		if lane := s.Lane(pods[i].Name); lane >= 0 {
			out = append(out, became(&pods[i], lane))
		}
	}
	return out, err
}

// became goes by what a kubelet writes into a pod's status: it evicts one for want of
// memory, disk or processes, and whoever has the right to evicts one through the API.
func became(p *corev1.Pod, lane int) record.Pod {
	out := record.Pod{Lane: lane, Evicted: p.Status.Reason == "Evicted" || disrupted(p) != ""}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		out.Restarts += int(max(c.RestartCount, 0))
		if ended := c.State.Terminated; ended != nil && ended.Reason == starved {
			out.OOMKilled++
		} else if ended := c.LastTerminationState.Terminated; ended != nil && ended.Reason == starved {
			out.OOMKilled++
		}
	}
	return out
}

// starved is a kubelet's reason for the end of a container that the kernel killed.
const starved = "OOMKilled"
