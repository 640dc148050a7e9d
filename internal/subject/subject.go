// Package subject defines what can be weighed: the host itself, the floor, a
// bare OCI runtime, a runtime behind an engine.
//
// A target knows how to make its operations ready and how to tell whether they
// really happened. It knows nothing of experiments: how often, in which order
// and how many at once is decided elsewhere. What a target can do is data in
// its [record.Target], never a type switch.
package subject

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// What can be asked of a subject is told by a package that holds nothing else, so
// that options do not need what carries them out.
type (
	// Op is one of the operations.
	Op = setting.Op
	// Limits are those of a container.
	Limits = setting.Limits
	// Engine is how an engine is reached.
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

// Ops are all of them, ContainerOps and PodOps those of either.
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

// CPUPeriod is that of a limit of CPU, in µs.
const CPUPeriod = setting.CPUPeriod

// DefaultLimits are those where nothing is said.
var DefaultLimits = setting.DefaultLimits

// Target is something that can be weighed.
type Target interface {
	// Info describes the target. It is complete before Open.
	Info() record.Target
	// Open makes everything a run on up to env.Lanes lanes needs: images,
	// bundles, folders, cgroups. All of it carries env.RunID, and Close of
	// the session removes it.
	Open(ctx context.Context, env Env) (Session, error)
}

// Env is what a run gives to its targets.
type Env struct {
	RunID    string        // names everything that is made
	Dir      string        // a folder of the run for this target alone, on a disk that allows exec
	StateDir string        // another one, where runtimes keep their state; under /run where there is one
	Lanes    int           // the most lanes a batch will have
	Timeout  time.Duration // of one operation on one lane
	Limits   Limits        // of every container, whatever the target
	Workload Workload      // what containers hold beside the probe
	// Network says that workloads are reached over the network from this machine: a
	// container of tare's own making that nobody could reach gets a way in.
	Network bool
	// Ready is when workloads are ready, for targets that are told by somebody else than
	// tare that they are.
	Ready setting.Ready
}

// Session is a target that is open for a run. Its methods are called by one
// goroutine at a time.
type Session interface {
	// Prepare makes one operation ready on the given lanes: nothing but the
	// release is missing afterwards. Create and Run start a new container on
	// a lane, the others act on the one that is there.
	Prepare(ctx context.Context, op Op, lanes []int) (Batch, error)
	// Discard removes whatever the lanes still hold, however broken it is.
	// It is not timed.
	Discard(ctx context.Context, lanes []int) error
	// Close removes everything that Open made. It is called on every path
	// out, with a context of its own.
	Close(ctx context.Context) error
}

// Batch is N operations that wait to be released together.
type Batch interface {
	// Start lets all lanes go at once, waits for the last one, and then
	// checks that what was reported did happen. It returns one sample a lane,
	// and the CLOCK_MONOTONIC time (ns) at which the lanes were released.
	// A lane that failed has a Failure and no latency; the error is for what
	// makes the whole batch worthless.
	Start(ctx context.Context) (released int64, samples []record.Sample, err error)
}

// ErrUnsupported is wrapped by errors that say that the machine or the target
// cannot do something, with the reason.
var ErrUnsupported = errors.New("unsupported")

// Unavailable is a target that was looked for and cannot be weighed.
type Unavailable struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Advice string `json:"advice"` // the one command or step that would change it
}

func (u *Unavailable) Error() string {
	if u.Advice == "" {
		return fmt.Sprintf("target %s: %s", u.Name, u.Reason)
	}
	return fmt.Sprintf("target %s: %s; %s", u.Name, u.Reason, u.Advice)
}

// Metered is a batch that knows what measuring cost it.
type Metered interface {
	// OwnCPU is the CPU time (ns) that tare's own processes used from the
	// release to the last lane's end, without that of the operations
	// themselves where they can be told apart.
	OwnCPU() int64
}

// Hooks is a batch that lets others look at the machine at its edges.
type Hooks interface {
	// Hook has begin called right before the lanes are released, and end as
	// soon as the last one is done, before anything is checked.
	Hook(begin, end func())
}

// HelperProcesses is a session whose target has processes that serve many
// containers or stand beside one: daemons, shims, monitors, a VMM. They are
// metered around every batch.
type HelperProcesses interface {
	// Processes returns those that are there now. It is called while nothing
	// is released.
	Processes(ctx context.Context) []Process
}

// Process is one of a target's own processes.
type Process struct {
	Role record.Role
	Pid  int
}

// Elsewhere is a target whose containers may not be on this machine.
type Elsewhere interface {
	// Elsewhere says why they are not; "" where they are.
	Elsewhere() string
}

// Cleaner is a target that can find and remove what an interrupted run left on
// it. What a run made carries the run's id in a label or in its name.
type Cleaner interface {
	// Clean returns what there is, one line each ("container tare-ID-0-1"),
	// and removes it unless dryRun. It touches nothing of another run.
	Clean(ctx context.Context, runID string, dryRun bool) ([]string, error)
}
