package terms

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// Bounds of limits.
const (
	MinMemory    = 1 << 20 // a runtime needs at least this to start a container
	MinCPUShares = 2       // the range of cpu.shares (cgroup v1)
	MaxCPUShares = 262_144
	MinCPU       = 0.01 // the kernel's minimum quota is 1 ms, 1 % of a 100 ms period
	MaxCPU       = 1024
)

// Limits declares the limits of every container. With mayBeNone, 0 means no limit. For CPU it always
// does.
func Limits(s *option.Set, l *setting.Limits, mayBeNone bool, otherwise string) {
	option.Group(s, &limits{l, mayBeNone}, "limits", "limits of every container: cpu=1,memory=1Gi,pids=100 (default: "+otherwise+")", option.Flag("limit"))
}

type limits struct {
	*setting.Limits
	mayBeNone bool
}

// Declare declares the individual limits.
func (l *limits) Declare(s *option.Set) {
	none := func(*option.Option) {}
	if l.mayBeNone {
		none = option.OrZero
	}
	option.Var(s, &l.Memory, "memory", "512Mi, 512MiB, 512M (10^6) or bytes", Memory, none, option.AtLeast(int64(MinMemory), "bytes start no container", "512Mi"))
	option.Var(s, &l.Pids, "pids", "maximum number of tasks", option.Integer64, none, option.AtLeast(int64(1), "is not a number of tasks", ""))
	option.Var(s, &l.CPUShares, "cpu_shares", "relative weight; 1024 is one part", option.Integer64, none, option.Bounds(int64(MinCPUShares), MaxCPUShares, "a weight", ", 1024 is one part"))
	option.Var(s, &l.CPU, "cpu", "CPU quota in CPUs: 1, 0.5 or 500m; 0: unlimited", CPU,
		option.OmitEmpty, option.OrZero, option.Bounds(MinCPU, MaxCPU, "a number of CPUs", ", and 0 for unlimited"))
	option.Var(s, &l.OverheadMemory, "overhead_memory", "overhead.podFixed.memory of a RuntimeClass: pods are created as by a kubelet, with cgroups limited to limits plus overhead", Memory,
		option.OmitEmpty, option.OrZero, option.AtLeast(int64(MinMemory), "is no overhead of a pod", "160Mi"))
	option.Var(s, &l.OverheadCPU, "overhead_cpu", "overhead.podFixed.cpu of a RuntimeClass: 250m", CPU,
		option.OmitEmpty, option.OrZero, option.Bounds(MinCPU, MaxCPU, "a number of CPUs", ", and 0 for none"))
}

// LimitsText describes the limits of every sandbox.
func LimitsText(l setting.Limits) string {
	var parts []string
	if l.CPU > 0 {
		parts = append(parts, strconv.FormatFloat(l.CPU, 'g', -1, 64)+" CPU")
	}
	if l.Memory > 0 {
		parts = append(parts, "memory "+page.Size(float64(l.Memory)))
	}
	if l.Pids > 0 {
		parts = append(parts, fmt.Sprintf("%d tasks", l.Pids))
	}
	if l.CPUShares > 0 {
		parts = append(parts, fmt.Sprintf("%d CPU shares", l.CPUShares))
	}
	if l.OverheadMemory > 0 || l.OverheadCPU > 0 {
		parts = append(parts, fmt.Sprintf("pod cgroups with an additional overhead of %s CPU and %s", strconv.FormatFloat(l.OverheadCPU, 'g', -1, 64), page.Size(float64(l.OverheadMemory))))
	}
	if parts == nil {
		return "no limits"
	}
	return "limits: " + strings.Join(parts, ", ")
}
