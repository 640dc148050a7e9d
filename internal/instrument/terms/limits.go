package terms

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// What limits may be.
const (
	MinMemory    = 1 << 20 // no runtime starts a container in less
	MinCPUShares = 2       // the kernel's own range, v1's cpu.shares
	MaxCPUShares = 262_144
	MinCPU       = 0.01 // the kernel takes no quota below 1 ms, a hundredth of its period
	MaxCPU       = 1024
)

// Limits declares those of every container. Where there may be none, 0 is none
// of each; of CPU it is so always.
func Limits(s *option.Set, l *setting.Limits, mayBeNone bool, otherwise string) {
	option.Group(s, &limits{l, mayBeNone}, "limits", "limits of every container: cpu=1,memory=1Gi,pids=100 (default: "+otherwise+")", option.Flag("limit"))
}

type limits struct {
	*setting.Limits
	mayBeNone bool
}

// Declare declares each of them.
func (l *limits) Declare(s *option.Set) {
	none := func(*option.Option) {}
	if l.mayBeNone {
		none = option.OrZero
	}
	option.Var(s, &l.Memory, "memory", "512Mi, 512MiB, 512M (10^6) or bytes", Memory, none, option.AtLeast(int64(MinMemory), "bytes start no container", "512Mi"))
	option.Var(s, &l.Pids, "pids", "the most tasks", option.Integer64, none, option.AtLeast(int64(1), "is not a number of tasks", ""))
	option.Var(s, &l.CPUShares, "cpu_shares", "relative weight; 1024 is one part", option.Integer64, none, option.Bounds(int64(MinCPUShares), MaxCPUShares, "a weight", ", 1024 is one part"))
	option.Var(s, &l.CPU, "cpu", "CPUs whose time it may use, by quota: 1, 0.5 or 500m; 0: as much as there is", CPU,
		option.OmitEmpty, option.OrZero, option.Bounds(MinCPU, MaxCPU, "a number of CPUs", ", and 0 for as much as there is"))
	option.Var(s, &l.OverheadMemory, "overhead_memory", "overhead.podFixed.memory of a RuntimeClass: pods are made as a kubelet makes them, their cgroups limited to limits plus overhead", Memory,
		option.OmitEmpty, option.OrZero, option.AtLeast(int64(MinMemory), "is no overhead of a pod", "160Mi"))
	option.Var(s, &l.OverheadCPU, "overhead_cpu", "the same of CPU: 250m", CPU,
		option.OmitEmpty, option.OrZero, option.Bounds(MinCPU, MaxCPU, "a number of CPUs", ", and 0 for none"))
}

// LimitsText says which limits every sandbox had.
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
		parts = append(parts, fmt.Sprintf("pods' cgroups with an overhead of %s CPU and %s more", strconv.FormatFloat(l.OverheadCPU, 'g', -1, 64), page.Size(float64(l.OverheadMemory))))
	}
	if parts == nil {
		return "no limits"
	}
	return "limits: " + strings.Join(parts, ", ")
}
