// Package subject defines what can be measured: the host, the floor, a bare OCI runtime, a
// runtime behind an engine.
//
// A target prepares its operations and checks that they took effect. It knows nothing of
// experiments: repetition, order and concurrency are decided elsewhere. What a target can do is
// data in its [record.Target], never a type switch.
package subject

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Package setting has these types, so that options do not import the code that implements them.
type (
	// Op is an operation.
	Op = setting.Op
	// Limits are the limits of a container.
	Limits = setting.Limits
	// Engine is how to reach an engine.
	Engine = setting.Engine
)

// The operations, see package setting.
const (
	RunPod    = setting.RunPod
	Create    = setting.Create
	Start     = setting.Start
	Stop      = setting.Stop
	Remove    = setting.Remove
	StopPod   = setting.StopPod
	RemovePod = setting.RemovePod
	Run       = setting.Run
)

// Ops are all operations, ContainerOps and PodOps those of either kind.
var (
	Ops          = setting.Ops
	ContainerOps = setting.ContainerOps
	PodOps       = setting.PodOps
)

// The networks of containers.
const (
	NetworkNone   = setting.NetworkNone
	NetworkBridge = setting.NetworkBridge
	NetworkHost   = setting.NetworkHost
)

// CPUPeriod is the period of a CPU limit, in µs.
const CPUPeriod = setting.CPUPeriod

// DefaultLimits are the limits by default.
var DefaultLimits = setting.DefaultLimits

// Target is something that can be measured.
type Target interface {
	// Info describes the target. It is complete before Open.
	Info() record.Target
	// Open makes everything for a run on up to env.Lanes lanes: images, bundles, folders,
	// cgroups. All of it has env.RunID, and Close of the session removes it.
	Open(ctx context.Context, env Env) (Session, error)
}

// Env is what a run gives to its targets.
type Env struct {
	RunID    string        // names everything that is made
	Dir      string        // the target's folder of the run, on a disk that allows exec
	StateDir string        // another one, for the state of runtimes; below /run where that exists
	Lanes    int           // maximum of a batch
	Timeout  time.Duration // of an operation on a lane
	Limits   Limits        // of every container, whatever the target
	Workload Workload      // what containers have in addition to the probe
	// Network means that workloads have to be reachable over the network from this machine:
	// tare makes a network for containers without one.
	Network bool
	// Ready is when workloads are ready, for targets that report readiness themselves.
	Ready setting.Ready
}

// Session is a target that is open for a run. One goroutine at a time calls its methods.
type Session interface {
	// Prepare prepares an operation on lanes, up to the release. Create and Run start a new
	// container on a lane, the others act on the existing one.
	Prepare(ctx context.Context, op Op, lanes []int) (Batch, error)
	// Discard removes the containers on lanes in any state. It is not timed.
	Discard(ctx context.Context, lanes []int) error
	// Close removes everything that Open made. It is called on every path out, with its own context.
	Close(ctx context.Context) error
}

// Batch is N operations that are released together.
type Batch interface {
	// Start releases all lanes together, waits for the last one, and checks that the reported
	// operations took effect. It returns one sample per lane, and the CLOCK_MONOTONIC time (ns)
	// of the release. A failed lane has a Failure and no latency; the error is for failures of
	// the whole batch.
	Start(ctx context.Context) (released int64, samples []record.Sample, err error)
}

// ErrUnsupported is wrapped by errors for what the machine or the target cannot do.
var ErrUnsupported = errors.New("unsupported")

// Unavailable is the error of a target that cannot be measured.
type Unavailable struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Advice string `json:"advice"` // the command or step that changes it
}

func (u *Unavailable) Error() string {
	if u.Advice == "" {
		return fmt.Sprintf("target %s: %s", u.Name, u.Reason)
	}
	return fmt.Sprintf("target %s: %s; %s", u.Name, u.Reason, u.Advice)
}

// Metered is a batch that knows the cost of measuring.
type Metered interface {
	// OwnCPU returns the CPU time (ns) of tare's processes from the release to the end of the last
	// lane. It excludes the CPU time of the operations if that can be separated.
	OwnCPU() int64
}

// Hooks is a batch that calls observers at its edges.
type Hooks interface {
	// Hook sets begin, called right before the release, and end, called when the last lane is
	// done, before the checks.
	Hook(begin, end func())
}

// HelperProcesses is a session whose target has processes that serve one or more containers:
// daemons, shims, monitors, a VMM. They are metered around every batch.
type HelperProcesses interface {
	// Processes returns the current helper processes. It is called while no operation runs.
	Processes(ctx context.Context) []Process
}

// Process is a process of a target.
type Process struct {
	Role record.Role
	Pid  int
}

// Elsewhere is a target whose containers may be on another machine.
type Elsewhere interface {
	// Elsewhere returns why they are; "" for this machine.
	Elsewhere() string
}

// Cleaner is a target that can find and remove what an interrupted run left. Everything that a
// run makes has the run's id in a label or in its name.
type Cleaner interface {
	// Clean lists what a run left, one line each ("container tare-ID-0-1"), and removes it
	// unless dryRun. It affects no other run.
	Clean(ctx context.Context, runID string, dryRun bool) ([]string, error)
}
