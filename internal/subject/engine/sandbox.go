package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// occupied are the containers that the lanes hold, as the engine knows them now,
// and their lanes in the same order; the error tells of those that it does not know, or
// whose state could not be read.
// It changes nothing that is remembered, so that commands may run in them meanwhile.
func (s *Session) occupied(ctx context.Context) (lanes []int, states []State, err error) {
	var names []string
	for _, c := range s.lanes {
		if c.name != "" {
			names = append(names, c.name)
		}
	}
	if len(names) == 0 {
		return nil, nil, nil
	}
	known, wrong := s.o.Driver.Look(ctx, names)
	if wrong != nil {
		err = fmt.Errorf("target %s: ask for the containers: %w", s.o.Target, wrong)
	}
	for n, c := range s.lanes {
		if state, ok := known[c.name]; ok && c.name != "" {
			lanes, states = append(lanes, n), append(states, state)
		} else if c.name != "" && unreadOf(wrong, c.name) == nil {
			err = errors.Join(err, fmt.Errorf("target %s: %s does not know the container %s any more", s.o.Target, s.o.Called, c.name))
		}
	}
	return lanes, states, err
}

// Sandboxes implements subject.Sandboxed. A cgroup that the engine names is given
// where the kernel says that the workload's memory is charged to it. What runs on
// another machine has no process here.
func (s *Session) Sandboxes(ctx context.Context) ([]subject.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	lanes, states, err := s.occupied(ctx)
	out := make([]subject.Sandbox, len(states))
	for i, c := range states {
		out[i] = subject.Sandbox{Lane: lanes[i], IDs: []string{c.ID}}
		if c.Pod.ID != "" && c.Pod.ID != c.ID {
			out[i].IDs = append(out[i].IDs, c.Pod.ID)
		}
		if (c.Status == Created || c.Status == Running) && !c.Afar {
			out[i].Workload, out[i].Group = c.Pid, Charged(c.Pid, c.Group)
		}
		if c.Asked {
			out[i].Group = c.Group
		}
	}
	return out, err
}

// Usage is what an engine says that a container uses: bytes, and ns of CPU since
// its start; -1 where it says nothing.
type Usage struct {
	Memory, CPU int64
	Time        int64    // to which the engine's figures belong, 0 where it does not say
	Rate        *float64 // CPUs on average, of one that tells that instead
}

// Statistics implements subject.Reporter.
func (s *Session) Statistics(ctx context.Context) ([]record.Statistic, error) {
	return s.Told(ctx, s.o.Source, s.o.Statistics)
}

// Told are the statistics of a source that ask asks; none where that says nothing
// of anything.
func (s *Session) Told(ctx context.Context, source string, ask func(ctx context.Context, containers []State) (map[string]Usage, error)) ([]record.Statistic, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	lanes, states, err := s.occupied(ctx)
	if len(lanes) == 0 {
		return nil, err
	}
	told, wrong := ask(ctx, states)
	if wrong != nil {
		return nil, errors.Join(err, fmt.Errorf("target %s: %w", s.o.Target, wrong))
	}
	if told == nil {
		return nil, err
	}
	var out []record.Statistic
	for i, c := range states {
		if used, is := told[c.ID]; is {
			out = append(out, record.Statistic{Lane: lanes[i], Source: source, Time: used.Time, Memory: used.Memory, CPU: used.CPU, Rate: used.Rate})
		} else {
			err = errors.Join(err, fmt.Errorf("target %s: %s says nothing of the container %s", s.o.Target, source, c.ID))
		}
	}
	return out, err
}

// Amount is a number that an engine tells, -1 for one that nothing can have which
// runs.
func Amount(n uint64) int64 {
	if n == 0 || n > 1<<63-1 {
		return -1
	}
	return int64(n)
}
