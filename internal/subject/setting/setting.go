// Package setting has the vocabulary for what can be requested of a subject: operations,
// limits, and how to reach its engine. It has no code that performs them, so that readers and
// judges of records need not import such code.
package setting

import (
	"fmt"
	"slices"
	"strings"
)

// Op is an operation of a lifecycle.
type Op string

// The operations of a container in their order, and run, which is create and start in one
// command. With pods, containers are in a pod, and run begins with the pod.
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

// Ops are all operations in the order of a life cycle, run at the end.
var Ops = []Op{RunPod, Create, Start, Stop, Remove, StopPod, RemovePod, Run}

// ContainerOps are the operations of a container, PodOps those of a pod without one.
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
	return "", fmt.Errorf("unknown operation %q (supported: %s)", s, strings.Join(names, ", "))
}

// Limits are the resource limits of every container. 0: unlimited.
type Limits struct {
	Memory    int64 `json:"memory"`     // bytes
	Pids      int64 `json:"pids"`       // tasks
	CPUShares int64 `json:"cpu_shares"` // relative weight, 1024 is one part
	// CPU is the number of CPUs, as a quota; 0: unlimited.
	CPU float64 `json:"cpu,omitempty"`
	// OverheadMemory and OverheadCPU are a RuntimeClass's overhead.podFixed, which a kubelet
	// adds for the sandbox. With an overhead pods are made as by a kubelet: their cgroups are
	// limited to the container's limits plus the overhead. Engines without pods ignore it.
	OverheadMemory int64   `json:"overhead_memory,omitempty"`
	OverheadCPU    float64 `json:"overhead_cpu,omitempty"`
}

// VolumePath is where a container finds its folder for the files of jobs.
const VolumePath = "/data"

// CPUPeriod is the period of the quota in µs, the default of the kernel and all engines.
const CPUPeriod = 100_000

// CPUQuota returns CPU in µs per CPUPeriod, 0 for none.
func (l Limits) CPUQuota() int64 { return int64(l.CPU*CPUPeriod + 0.5) }

// Overhead returns the overhead of a pod as limits.
func (l Limits) Overhead() Limits {
	return Limits{Memory: l.OverheadMemory, CPU: l.OverheadCPU, CPUShares: shares(l.OverheadCPU)}
}

// shares returns the weight that a kubelet sets for requested CPUs.
func shares(cpus float64) int64 { return int64(cpus * 1024) }

// Pod returns the limits that a kubelet sets on a pod's cgroup. For each limit of the
// container it is that limit plus the overhead. The shares follow from that sum of CPUs.
// Without an overhead it returns no limits.
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

// DefaultLimits are wide enough not to affect a runtime, and present so that setting limits is
// part of what is measured.
var DefaultLimits = Limits{Memory: 512 << 20, Pids: 256, CPUShares: 1024}
