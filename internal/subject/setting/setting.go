// Package setting is what can be asked of a subject: which operations, within
// which limits, and through which engine, reached how. It holds words and no
// work, so that whoever reads or judges what was asked needs nothing that does it.
package setting

import (
	"fmt"
	"slices"
	"strings"
)

// Op is one operation of a lifecycle.
type Op string

// The operations of a container, in the order in which one goes through them,
// and run, which is create and start in the runtime's own one command. Where
// there are pods, containers live in one: run then begins with the pod.
const (
	RunPod    Op = "runp"
	Create    Op = "create"
	Start     Op = "start"
	Stop      Op = "stop"
	Remove    Op = "rm"
	StopPod   Op = "stopp"
	RemovePod Op = "rmp"
	Run       Op = "run"
)

// Ops are all operations, in the order of a life: that of a container, or of a
// pod around it, and run at the end.
var Ops = []Op{RunPod, Create, Start, Stop, Remove, StopPod, RemovePod, Run}

// ContainerOps and PodOps are those of a container, and of a pod without one.
var (
	ContainerOps = []Op{Create, Start, Stop, Remove, Run}
	PodOps       = []Op{RunPod, StopPod, RemovePod}
)

// ParseOp returns the operation of that name.
func ParseOp(s string) (Op, error) {
	if slices.Contains(Ops, Op(s)) {
		return Op(s), nil
	}
	var names []string
	for _, op := range Ops {
		names = append(names, string(op))
	}
	return "", fmt.Errorf("unknown operation %q: the operations are %s", s, strings.Join(names, ", "))
}

// Limits are the resource limits of every container that is weighed. What is 0 is
// not limited.
type Limits struct {
	Memory    int64 `json:"memory"`     // bytes
	Pids      int64 `json:"pids"`       // tasks
	CPUShares int64 `json:"cpu_shares"` // relative weight, 1024 is one part
	// CPU is how many CPUs' time it may use, by quota; 0: as much as there is.
	CPU float64 `json:"cpu,omitempty"`
	// OverheadMemory and OverheadCPU are overhead.podFixed of a RuntimeClass: what
	// a kubelet adds for the sandbox itself. Where there is any, pods are made as a
	// kubelet makes them: their cgroups are limited to the container's limits and
	// this. Engines without pods make nothing of it.
	OverheadMemory int64   `json:"overhead_memory,omitempty"`
	OverheadCPU    float64 `json:"overhead_cpu,omitempty"`
}

// VolumePath is where a container finds the folder of its own that a job works in.
const VolumePath = "/data"

// CPUPeriod is that of the quota, in µs: the kernel's and every engine's default.
const CPUPeriod = 100_000

// CPUQuota is Limits.CPU in µs per CPUPeriod, 0 for none.
func (l Limits) CPUQuota() int64 { return int64(l.CPU*CPUPeriod + 0.5) }

// Overhead is that of a pod by itself, as limits.
func (l Limits) Overhead() Limits {
	return Limits{Memory: l.OverheadMemory, CPU: l.OverheadCPU, CPUShares: shares(l.OverheadCPU)}
}

// shares are the weight that a kubelet gives for requested CPUs.
func shares(cpus float64) int64 { return int64(cpus * 1024) }

// Pod are the limits that a kubelet gives a pod's cgroup: those of its container
// and the overhead, of each thing that the container has a limit of, and as many shares
// as that requests. Without an overhead there are none.
func (l Limits) Pod() Limits {
	var pod Limits
	if l.Overhead() == pod {
		return pod
	}
	if l.Memory > 0 {
		pod.Memory = l.Memory + l.OverheadMemory
	}
	if l.CPU > 0 {
		pod.CPU = l.CPU + l.OverheadCPU
		pod.CPUShares = shares(pod.CPU)
	}
	return pod
}

// DefaultLimits are wide enough to stay out of the way of every runtime, and
// present so that setting them up is part of what is weighed.
var DefaultLimits = Limits{Memory: 512 << 20, Pids: 256, CPUShares: 1024}
