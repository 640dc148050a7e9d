package fake

import (
	"context"
	"fmt"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

var (
	_ subject.Executor  = (*session)(nil)
	_ subject.Sandboxed = (*session)(nil)
	_ subject.Reporter  = (*session)(nil)
)

// Exec implements subject.Executor.
func (s *session) Exec(ctx context.Context, n int, args []string) (subject.Executed, error) {
	if n < 0 || n >= len(s.held) || !s.held[n].container {
		return subject.Executed{}, fmt.Errorf("fake %s: exec on lane %d, which holds no container", s.Name, n)
	}
	if s.OnExec != nil {
		return s.OnExec(ctx, n, args)
	}
	return subject.Executed{Command: "fake exec ID " + lane.Quote(args)}, ctx.Err()
}

// Sandboxes implements subject.Sandboxed.
func (s *session) Sandboxes(context.Context) ([]subject.Sandbox, error) {
	var out []subject.Sandbox
	for _, n := range s.lanes() {
		b := subject.Sandbox{Lane: n, IDs: []string{fmt.Sprintf("fake-%s-%d", s.Name, n)}}
		if s.OnSandbox != nil {
			if err := s.OnSandbox(&b); err != nil {
				return nil, err
			}
		}
		out = append(out, b)
	}
	return out, nil
}

// Statistics implements subject.Reporter.
func (s *session) Statistics(ctx context.Context) ([]record.Statistic, error) {
	if s.OnStatistics == nil {
		return nil, nil
	}
	return s.OnStatistics(ctx, s.lanes())
}

// lanes returns the lanes with a container or a pod.
func (s *session) lanes() []int {
	var out []int
	for n, l := range s.held {
		if l != (life{}) {
			out = append(out, n)
		}
	}
	return out
}
