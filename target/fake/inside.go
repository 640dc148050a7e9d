package fake

import (
	"context"
	"fmt"

	"github.com/tare-bench/tare/lane"
	"github.com/tare-bench/tare/record"
	"github.com/tare-bench/tare/target"
)

var (
	_ target.Executor  = (*session)(nil)
	_ target.Sandboxed = (*session)(nil)
	_ target.Reporter  = (*session)(nil)
)

// Exec implements target.Executor.
func (s *session) Exec(ctx context.Context, n int, args []string) (target.Executed, error) {
	if n < 0 || n >= len(s.held) || !s.held[n].container {
		return target.Executed{}, fmt.Errorf("fake %s: exec on lane %d, which holds no container", s.Name, n)
	}
	if s.OnExec != nil {
		return s.OnExec(ctx, n, args)
	}
	return target.Executed{Command: "fake exec ID " + lane.Quote(args)}, ctx.Err()
}

// Sandboxes implements target.Sandboxed.
func (s *session) Sandboxes(context.Context) ([]target.Sandbox, error) {
	var out []target.Sandbox
	for _, n := range s.lanes() {
		b := target.Sandbox{Lane: n, IDs: []string{fmt.Sprintf("fake-%s-%d", s.Name, n)}}
		if s.OnSandbox != nil {
			if err := s.OnSandbox(&b); err != nil {
				return nil, err
			}
		}
		out = append(out, b)
	}
	return out, nil
}

// Statistics implements target.Reporter.
func (s *session) Statistics(ctx context.Context) ([]record.Statistic, error) {
	if s.OnStatistics == nil {
		return nil, nil
	}
	return s.OnStatistics(ctx, s.lanes())
}

// lanes are those that hold a container or a pod.
func (s *session) lanes() []int {
	var out []int
	for n, l := range s.held {
		if l != (life{}) {
			out = append(out, n)
		}
	}
	return out
}
