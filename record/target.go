package record

// Target describes a target, whether it was measured or unavailable.
type Target struct {
	Type        Type                 `json:"type"`
	Name        string               `json:"name" is:"needed,safe"` // as in the plan: "runc", "docker/crun"
	Kind        string               `json:"kind" is:"safe"`        // "host", "floor", "oci", "docker", …
	Version     string               `json:"version,omitempty" is:"safe"`
	Path        string               `json:"path,omitempty" is:"kind=path"` // path of the program, if any
	Digest      string               `json:"digest,omitempty" is:"safe"`
	SpecVersion string               `json:"spec_version,omitempty" is:"safe"` // ociVersion that tare writes into its bundles
	Clock       string               `json:"clock" is:"safe"`                  // "host": the workload's CLOCK_MONOTONIC is that of the host; "guest": it has its own
	Operations  map[string]Operation `json:"operations" is:"safekeys"`
	Notes       []string             `json:"notes,omitempty"`                // adjustments that were necessary on this machine
	Config      map[string]string    `json:"config,omitempty" is:"safekeys"` // configuration that affects the figures
	Kubernetes  *Kubernetes          `json:"kubernetes,omitempty"`           // properties of its cluster; nil without a cluster
}

// Kubernetes contains properties of measured pods from the objects of their cluster.
type Kubernetes struct {
	RuntimeClass string   `json:"runtime_class,omitempty" is:"label,safe"` // name; "" if the pods have none
	Handler      string   `json:"handler,omitempty" is:"label,safe"`       // handler of the RuntimeClass
	Overhead     *Amounts `json:"overhead,omitempty"`                      // overhead.podFixed of the RuntimeClass; nil: none
	Scheduling   string   `json:"scheduling,omitempty"`                    // scheduling of the RuntimeClass as JSON; "" if there is none
	Allocatable  *Amounts `json:"allocatable,omitempty"`                   // allocatable resources of the node; nil if tare does not run on a node of the cluster
}

// Amounts are the resources considered by the scheduler.
type Amounts struct {
	CPU    int64 `json:"cpu"` // millicores
	Memory int64 `json:"memory" is:"bytes"`
}

// Operation is the definition of a timed operation. Every result is printed with it.
type Operation struct {
	Command string `json:"command" is:"kind=command"` // command line or API calls, ready to paste, with ID in place of the container's name
	Done    Stamp  `json:"done"`                      // stamp that ends the operation's latency
	Means   string `json:"means" is:"safe"`           // description of Done
	Absent  string `json:"absent,omitempty"`          // reason why the target lacks the operation
}

// Stamp is the name of a point in time of an operation.
type Stamp string

// Stamps of an operation. Some operations lack some of them.
const (
	StampReturned Stamp = "returned" // the command exited, or the API call returned
	StampRunning  Stamp = "running"  // the runtime reported the state running (or created, stopped)
	StampFirst    Stamp = "first"    // the workload executed its first instruction
	StampSeen     Stamp = "seen"     // the workload's first output reached the host
	StampExited   Stamp = "exited"   // the workload's process had ended

	// For a pod: when the API server of its cluster reported the event, which may be late.
	StampScheduled Stamp = "scheduled" // assigned to a node
	StampSandbox   Stamp = "sandbox"   // the sandbox existed
	StampReady     Stamp = "ready"     // the condition Ready was true; without a cluster: first successful poll from outside
	StampGone      Stamp = "gone"      // the object was deleted
	// The same events as reported by the node's engine, if the node is this machine.
	StampNodeSandbox Stamp = "node-sandbox"
	StampNodeStarted Stamp = "node-started"
)

// Stamps lists all stamps in their usual order.
var Stamps = []Stamp{StampReturned, StampScheduled, StampNodeSandbox, StampSandbox, StampNodeStarted, StampRunning, StampFirst, StampSeen, StampReady, StampExited, StampGone}

// Failure is the reason why an operation has no time.
type Failure struct {
	Kind    string `json:"kind" is:"needed,safe"`               // see the Fail constants
	Detail  string `json:"detail"`                              // one line, for display
	Command string `json:"command,omitempty" is:"kind=command"` // failed command, ready to paste
	Exit    int    `json:"exit,omitempty" is:"any"`             // exit code, 128+n for signal n
	Output  string `json:"output,omitempty"`                    // output of the command, truncated to a few KiB
	Advice  string `json:"advice,omitempty"`                    // what to do, if there is more specific advice than for Kind
}

// Kinds of failure.
const (
	FailExit        = "exit"        // the command exited non-zero
	FailExec        = "exec"        // the command could not be executed
	FailTimeout     = "timeout"     // timed out
	FailState       = "state"       // the state reported by the runtime is unreadable or contradicts success
	FailWorkload    = "workload"    // the workload did not run, or did not end as requested
	FailError       = "error"       // an API call returned an error
	FailInterrupted = "interrupted" // the run was interrupted
)

// Role is the component to which a cost is attributed.
type Role string

// Roles of processes outside of sandboxes.
const (
	RoleDaemon   Role = "daemon"   // the engine's daemon: dockerd, containerd, crio, isulad
	RoleShim     Role = "shim"     // one per container or pod: containerd-shim-*, isulad-shim
	RoleMonitor  Role = "monitor"  // conmon
	RoleVMM      Role = "vmm"      // qemu, cloud-hypervisor, firecracker
	RoleVirtiofs Role = "virtiofs" // virtiofsd
)
