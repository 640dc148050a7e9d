package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// held are the lanes that hold a container.
func (s *session) held() []int {
	var lanes []int
	for n, h := range s.holds {
		if h.name != "" {
			lanes = append(lanes, n)
		}
	}
	return lanes
}

// Sandboxes implements subject.Sandboxed. Which cgroup a container is in, the
// daemon does not say: its inspect names the parent that was asked for, and none
// was. What runs elsewhere has no process here.
func (s *session) Sandboxes(ctx context.Context) ([]subject.Sandbox, error) {
	lanes := s.held()
	out, errs := make([]subject.Sandbox, len(lanes)), make([]error, len(lanes))
	each(len(lanes), func(i int) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		name := s.holds[lanes[i]].name
		found, err := s.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		st := found.Container.State
		switch {
		case err != nil:
			errs[i] = fmt.Errorf("target %s: lane %d: inspect %s: %w", s.name, lanes[i], name, s.plain(err))
			return
		case strings.TrimPrefix(found.Container.Name, "/") != name || found.Container.ID == "" || st == nil:
			errs[i] = fmt.Errorf("target %s: lane %d: inspect %s answered for container %q", s.name, lanes[i], name, found.Container.Name)
			return
		}
		out[i] = subject.Sandbox{Lane: lanes[i], IDs: []string{found.Container.ID}}
		if s.local && st.Running && st.Pid > 0 {
			out[i].Workload = st.Pid
		}
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// Statistics implements subject.Reporter.
func (s *session) Statistics(ctx context.Context) ([]record.Statistic, error) {
	lanes := s.held()
	out, errs := make([]record.Statistic, len(lanes)), make([]error, len(lanes))
	each(len(lanes), func(i int) {
		name := s.holds[lanes[i]].name
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		stats, err := s.stats(ctx, name)
		if err != nil {
			errs[i] = fmt.Errorf("target %s: lane %d: GET /containers/%s/stats: %w", s.name, lanes[i], name, s.plain(err))
		}
		out[i] = record.Statistic{Lane: lanes[i], Source: "docker stats", Memory: shownMemory(stats.MemoryStats), CPU: totalCPU(stats.CPUStats)}
	})
	return out, errors.Join(errs...)
}

// mostStats is the longest reply: a hundred CPUs take some 4 KiB.
const mostStats = 1 << 20

// stats asks for one reading. A daemon before API 1.41 (Docker 20.10) does not
// know one-shot, and waits a second for another reading.
func (s *session) stats(ctx context.Context, name string) (container.StatsResponse, error) {
	var stats container.StatsResponse
	reply, err := s.ContainerStats(ctx, name, client.ContainerStatsOptions{})
	if err != nil {
		return stats, err
	}
	defer reply.Body.Close()
	err = json.NewDecoder(io.LimitReader(reply.Body, mostStats)).Decode(&stats)
	return stats, err
}

// shownMemory is what `docker stats` shows, -1 where the daemon reports none:
// calculateMemUsageUnixNoCache of
// https://github.com/docker/cli/blob/v28.2.2/cli/command/container/stats_helpers.go
// which takes off the page cache that is first to go: total_inactive_file of
// cgroup v1, inactive_file of v2.
func shownMemory(m container.MemoryStats) int64 {
	if m.Usage == 0 || m.Usage > math.MaxInt64 {
		return -1
	}
	if v, isV1 := m.Stats["total_inactive_file"]; isV1 && v < m.Usage {
		return int64(m.Usage - v)
	}
	if v := m.Stats["inactive_file"]; v < m.Usage {
		return int64(m.Usage - v)
	}
	return int64(m.Usage)
}

// totalCPU is in ns, -1 where the daemon reports none: nothing that ran has 0.
func totalCPU(c container.CPUStats) int64 {
	if n := c.CPUUsage.TotalUsage; n > 0 && n <= math.MaxInt64 {
		return int64(n)
	}
	return -1
}
