package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/subject/engine"
)

// maxStats bounds a reply: a hundred CPUs take about 4 KiB.
const maxStats = 1 << 20

// statistics makes one reading of each container. A daemon before API 1.41 (Docker 20.10) does not
// know one-shot, and takes a second for two readings.
func (d *driver) statistics(ctx context.Context, states []engine.State) (map[string]engine.Usage, error) {
	usage := map[string]engine.Usage{}
	var mu sync.Mutex
	err := engine.Each(len(states), func(i int) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		var stats container.StatsResponse
		reply, err := d.ContainerStats(ctx, states[i].ID, client.ContainerStatsOptions{})
		if err == nil {
			defer reply.Body.Close()
			err = json.NewDecoder(io.LimitReader(reply.Body, maxStats)).Decode(&stats)
		}
		if err != nil {
			return fmt.Errorf("GET /containers/%s/stats: %w", states[i].Name, d.plain(err))
		}
		mu.Lock()
		defer mu.Unlock()
		usage[states[i].ID] = engine.Usage{Memory: shownMemory(stats.MemoryStats), CPU: engine.Amount(stats.CPUStats.CPUUsage.TotalUsage)}
		return nil
	})
	return usage, err
}

// shownMemory returns the memory that `docker stats` shows, -1 if unknown: usage without the
// inactive page cache, which is total_inactive_file in cgroup v1 and inactive_file in v2. See
// calculateMemUsageUnixNoCache of
// https://github.com/docker/cli/blob/v28.2.2/cli/command/container/stats_helpers.go
func shownMemory(m container.MemoryStats) int64 {
	used := engine.Amount(m.Usage)
	v, isV1 := m.Stats["total_inactive_file"]
	if !isV1 || v >= m.Usage {
		v = m.Stats["inactive_file"]
	}
	if used > 0 && v < m.Usage {
		used -= int64(v)
	}
	return used
}
