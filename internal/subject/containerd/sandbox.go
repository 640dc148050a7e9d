package containerd

import (
	"context"
	"fmt"
	"path"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	types "github.com/containerd/containerd/api/types/task"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/tare-bench/tare/internal/subject"
)

// Sandboxes implements subject.Sandboxed, by one Tasks.List. With a VM, or
// gVisor, the process that containerd tells is the sandbox's.
func (s *session) Sandboxes(ctx context.Context) ([]subject.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := s.client.TaskService().List(ctx, &tasks.ListTasksRequest{})
	if err != nil {
		return nil, s.failed("ask for the sandboxes", fmt.Errorf("Tasks.List: %w", errgrpc.ToNative(err)))
	}
	pids := map[string]int{}
	for _, p := range list.Tasks {
		if p.Status != types.Status_STOPPED && p.Pid > 1 {
			pids[p.ID] = int(p.Pid)
		}
	}
	var out []subject.Sandbox
	for n, c := range s.containers {
		if c.id != "" {
			out = append(out, subject.Sandbox{Lane: n, IDs: []string{c.id}, Workload: pids[c.id], Group: s.groupOf(c.id)})
		}
	}
	return out, nil
}

// groupOf is the cgroup that is asked for, as a path from the root of the
// hierarchies.
func (s *session) groupOf(id string) string { return path.Join("/", s.group, id) }
