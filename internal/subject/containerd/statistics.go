package containerd

import (
	"context"
	"fmt"

	one "github.com/containerd/cgroups/v3/cgroup1/stats"
	two "github.com/containerd/cgroups/v3/cgroup2/stats"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/typeurl/v2"

	"github.com/tare-bench/tare/internal/subject/engine"
)

// statistics makes one Tasks.Metrics call, for which each shim reads its container's cgroup.
// Memory is that of ctr task metrics, memory.usage_in_bytes or memory.current, including page
// cache. Not every shim reports it.
func (d *driver) statistics(ctx context.Context, states []engine.State) (map[string]engine.Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	usage := map[string]engine.Usage{}
	var filters []string
	for _, s := range states {
		usage[s.ID] = engine.Usage{Memory: -1, CPU: -1}
		filters = append(filters, fmt.Sprintf("id==%q", s.ID))
	}
	reply, err := d.client.TaskService().Metrics(ctx, &tasks.MetricsRequest{Filters: filters})
	if err != nil {
		return nil, fmt.Errorf("Tasks.Metrics: %w", errgrpc.ToNative(err))
	}
	for _, m := range reply.Metrics {
		if m.GetData() != nil {
			usage[m.GetID()] = read(m.Data)
		}
	}
	return usage, nil
}

// read extracts memory and CPU time from statistics of cgroup v1 or v2. Other forms yield -1.
func read(data typeurl.Any) engine.Usage {
	var v1 one.Metrics
	var v2 two.Metrics
	switch {
	case typeurl.Is(data, &v1) && typeurl.UnmarshalTo(data, &v1) == nil:
		memory, cpu := v1.GetMemory().GetUsage(), v1.GetCPU().GetUsage()
		return engine.Usage{Memory: engine.Reported(memory != nil, memory.GetUsage(), 1), CPU: engine.Reported(cpu != nil, cpu.GetTotal(), 1)}
	case typeurl.Is(data, &v2) && typeurl.UnmarshalTo(data, &v2) == nil:
		memory, cpu := v2.GetMemory(), v2.GetCPU()
		return engine.Usage{Memory: engine.Reported(memory != nil, memory.GetUsage(), 1), CPU: engine.Reported(cpu != nil, cpu.GetUsageUsec(), 1000)}
	}
	return engine.Usage{Memory: -1, CPU: -1}
}
