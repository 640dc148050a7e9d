package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// occupied returns the lanes that hold containers and the engine's current states of these,
// in the same order. The error lists containers that are unknown or unreadable. It does not
// change the session, so commands may run in the containers at the same time.
func (s *Session) occupied(ctx context.Context) (lanes []int, states []State, err error) {
	var names []string
	for _, c := range s.Held() {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return nil, nil, nil
	}
	known, wrong := s.o.Driver.Look(ctx, names)
	if wrong != nil {
		err = fmt.Errorf("target %s: look up containers: %w", s.o.Target, wrong)
	}
	for n, c := range s.lanes {
		if state, ok := known[c.name]; ok && c.name != "" {
			lanes, states = append(lanes, n), append(states, state)
		} else if c.name != "" && unreadOf(wrong, c.name) == nil {
			err = errors.Join(err, fmt.Errorf("target %s: %s no longer knows the container %s", s.o.Target, s.o.Called, c.name))
		}
	}
	return lanes, states, err
}

// Sandboxes implements subject.Sandboxed. It returns the engine's cgroup only if the kernel
// charges the workload's memory to it. Remote containers have no process here.
func (s *Session) Sandboxes(ctx context.Context) ([]subject.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	lanes, states, err := s.occupied(ctx)
	out := make([]subject.Sandbox, len(states))
	for i, c := range states {
		out[i] = subject.Sandbox{Lane: lanes[i], IDs: []string{c.ID}}
		if c.Pod.ID != "" && c.Pod.ID != c.ID {
			out[i].IDs = append(out[i].IDs, c.Pod.ID)
		}
		if (c.Status == Created || c.Status == Running) && !c.Remote {
			out[i].Workload, out[i].Group = c.Pid, Charged(c.Pid, c.Group)
		}
		if c.GroupRequested {
			out[i].Group = c.Group
		}
	}
	return out, err
}

// Usage is a container's usage as reported by the engine: bytes, and ns of CPU since its
// start; -1 if unknown.
type Usage struct {
	Memory, CPU int64
	Time        int64    // of the engine's reading; 0 if unknown
	Rate        *float64 // average CPUs, from engines that report it instead of CPU time
}

// Statistics implements subject.Reporter.
func (s *Session) Statistics(ctx context.Context) ([]record.Statistic, error) {
	return s.StatisticsFrom(ctx, s.o.Source, s.o.Statistics)
}

// StatisticsFrom returns the statistics that ask returns, under the name source; none if ask
// returns nil.
func (s *Session) StatisticsFrom(ctx context.Context, source string, ask func(ctx context.Context, containers []State) (map[string]Usage, error)) ([]record.Statistic, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	lanes, states, err := s.occupied(ctx)
	if len(lanes) == 0 {
		return nil, err
	}
	usage, failed := ask(ctx, states)
	if failed != nil {
		return nil, errors.Join(err, fmt.Errorf("target %s: %w", s.o.Target, failed))
	}
	if usage == nil {
		return nil, err
	}
	var out []record.Statistic
	for i, c := range states {
		if used, is := usage[c.ID]; is {
			out = append(out, record.Statistic{Lane: lanes[i], Source: source, Time: used.Time, Memory: used.Memory, CPU: used.CPU, Rate: used.Rate})
		} else {
			err = errors.Join(err, fmt.Errorf("target %s: %s has no figures for the container %s", s.o.Target, source, c.ID))
		}
	}
	return out, err
}

// Amount converts an engine's figure; it returns -1 for values that no running container has.
func Amount(n uint64) int64 { return Reported(n > 0, n, 1) }

// Reported returns value times unit, or -1 if it is unknown or overflows.
func Reported(known bool, value, unit uint64) int64 {
	const most = 1<<63 - 1
	if !known || value > most/unit {
		return -1
	}
	return int64(value * unit)
}
