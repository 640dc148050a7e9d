package containerd

import (
	"testing"

	one "github.com/containerd/cgroups/v3/cgroup1/stats"
	two "github.com/containerd/cgroups/v3/cgroup2/stats"
	types "github.com/containerd/containerd/api/types"
	"github.com/containerd/typeurl/v2"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestStatisticsOfBothVersionsAreRead(t *testing.T) {
	for _, c := range []struct {
		name        string
		said        any
		memory, cpu int64
	}{
		{"v1", &one.Metrics{Memory: &one.MemoryStat{Usage: &one.MemoryEntry{Usage: 4096}}, CPU: &one.CPUStat{Usage: &one.CPUUsage{Total: 7}}}, 4096, 7},
		{"v2", &two.Metrics{Memory: &two.MemoryStat{Usage: 4096}, CPU: &two.CPUStat{UsageUsec: 7}}, 4096, 7000},
		{"v1 without controllers", &one.Metrics{}, -1, -1},
		{"v2 without controllers", &two.Metrics{}, -1, -1},
		{"no memory", &two.Metrics{CPU: &two.CPUStat{}}, -1, 0},
		{"more than there can be", &two.Metrics{Memory: &two.MemoryStat{Usage: 1 << 63}, CPU: &two.CPUStat{UsageUsec: 1 << 62}}, -1, -1},
		{"another form", &types.Mount{}, -1, -1},
	} {
		data, err := typeurl.MarshalAny(c.said)
		must.OK(t, err)
		if got := read(data); got.Memory != c.memory || got.CPU != c.cpu {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
