package cli

import (
	"context"
	"fmt"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Occupied are the containers that the lanes hold, as the engine knows them now,
// and their lanes in the same order. It changes nothing that is remembered, so
// that commands may run in them meanwhile.
func (s *Session) Occupied(ctx context.Context) (lanes []int, states []State, err error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	var names []string
	for n, c := range s.lanes {
		if c.name != "" {
			lanes, names = append(lanes, n), append(names, c.name)
		}
	}
	if len(names) == 0 {
		return nil, nil, nil
	}
	known, err := s.o.Engine.Look(ctx, names)
	if err != nil {
		return nil, nil, fmt.Errorf("target %s: ask for the containers: %w", s.o.Target, err)
	}
	for _, name := range names {
		state, ok := known[name]
		if !ok {
			return nil, nil, fmt.Errorf("target %s: %s does not know the container %s any more", s.o.Target, s.o.Called, name)
		}
		states = append(states, state)
	}
	return lanes, states, nil
}

// Sandboxes implements subject.Sandboxed. A cgroup that the engine names is given
// where the kernel says that the workload's memory is charged to it.
func (s *Session) Sandboxes(ctx context.Context) ([]subject.Sandbox, error) {
	lanes, states, err := s.Occupied(ctx)
	out := make([]subject.Sandbox, len(states))
	for i, c := range states {
		out[i] = subject.Sandbox{Lane: lanes[i], IDs: []string{c.ID}}
		if c.Status == Running {
			out[i].Workload, out[i].Group = c.Pid, engine.Charged(c.Pid, c.Group)
		}
	}
	return out, err
}
