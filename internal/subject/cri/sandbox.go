package cri

import (
	"context"
	"encoding/json"
	"fmt"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Sandboxes implements subject.Sandboxed, by a verbose PodSandboxStatus and
// ContainerStatus for each lane. What an engine says beyond CRI is its own:
// containerd and CRI-O tell processes, CRI-O none for a pod that it holds
// without one.
func (s *session) Sandboxes(ctx context.Context) ([]subject.Sandbox, error) {
	var out []subject.Sandbox
	for n, h := range s.held {
		if h.pod == "" {
			continue
		}
		b := subject.Sandbox{Lane: n, IDs: []string{h.pod}, Group: s.podGroup(h.name)}
		if h.container != "" {
			b.IDs = []string{h.container, h.pod}
		}
		out = append(out, b)
	}
	err := engine.Each(len(out), func(i int) error { return s.processes(ctx, s.held[out[i].Lane], &out[i]) })
	if err != nil {
		return nil, s.failed("ask for the sandboxes", err)
	}
	return out, nil
}

// processes asks for the first ones of a pod and of its container.
func (s *session) processes(ctx context.Context, h *held, b *subject.Sandbox) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p, err := s.conn.runtime.PodSandboxStatus(ctx, &api.PodSandboxStatusRequest{PodSandboxId: h.pod, Verbose: true})
	if err != nil {
		return fmt.Errorf("of the pod %s: %w", h.name, plain(ctx, "PodSandboxStatus", err))
	}
	if p.GetStatus().GetState() == api.PodSandboxState_SANDBOX_READY {
		b.Pause = pidIn(p.Info)
	}
	if h.container == "" {
		return nil
	}
	c, err := s.conn.runtime.ContainerStatus(ctx, &api.ContainerStatusRequest{ContainerId: h.container, Verbose: true})
	if err != nil {
		return fmt.Errorf("of the container %s: %w", h.token, plain(ctx, "ContainerStatus", err))
	}
	if state := c.GetStatus().GetState(); state == api.ContainerState_CONTAINER_RUNNING || state == api.ContainerState_CONTAINER_CREATED {
		b.Workload = pidIn(c.Info)
	}
	return nil
}

// maxPid is the kernel's limit for process ids on 64 bits (PID_MAX_LIMIT).
const maxPid = 1 << 22

// pidIn is the "pid" in the object under "info" of a verbose answer, 0 where
// there is none.
func pidIn(info map[string]string) int {
	var said struct {
		Pid int `json:"pid"`
	}
	if json.Unmarshal([]byte(info["info"]), &said) != nil || said.Pid <= 1 || said.Pid > maxPid {
		return 0
	}
	return said.Pid
}
