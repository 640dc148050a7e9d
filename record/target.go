package record

// Target describes one target, measured or unavailable.
type Target struct {
	Type        Type                 `json:"type"`
	Name        string               `json:"name" is:"needed,safe"` // as in the plan: "runc", "docker/crun"
	Kind        string               `json:"kind" is:"safe"`        // "host", "floor", "oci", "docker", …
	Version     string               `json:"version,omitempty" is:"safe"`
	Path        string               `json:"path,omitempty" is:"kind=path"` // the program, if there is one
	Digest      string               `json:"digest,omitempty" is:"safe"`
	SpecVersion string               `json:"spec_version,omitempty" is:"safe"` // ociVersion written into its bundles
	Clock       string               `json:"clock" is:"safe"`                  // "host": the workload's CLOCK_MONOTONIC is the host's; "guest": it is not
	Operations  map[string]Operation `json:"operations" is:"safekeys"`
	Notes       []string             `json:"notes,omitempty"`                // adjustments that made it work here
	Config      map[string]string    `json:"config,omitempty" is:"safekeys"` // configuration that changes the figures
	Kubernetes  *Kubernetes          `json:"kubernetes,omitempty"`           // of its cluster; nil if there is none
}

// Kubernetes are the facts about measured pods in the objects of their cluster.
type Kubernetes struct {
	RuntimeClass string   `json:"runtime_class,omitempty" is:"label,safe"` // name; "" if pods have none
	Handler      string   `json:"handler,omitempty" is:"label,safe"`       // of the RuntimeClass
	Overhead     *Amounts `json:"overhead,omitempty"`                      // overhead.podFixed of the RuntimeClass; nil: none
	Scheduling   string   `json:"scheduling,omitempty"`                    // of the RuntimeClass, as JSON; "" for none
	Allocatable  *Amounts `json:"allocatable,omitempty"`                   // of the node; nil if tare does not run on a node of the cluster
}

// Amounts are the resources that the scheduler counts.
type Amounts struct {
	CPU    int64 `json:"cpu"` // thousandths
	Memory int64 `json:"memory" is:"bytes"`
}

// Operation is the definition of a timed operation, which is printed with every result.
type Operation struct {
	Command string `json:"command" is:"kind=command"` // pasteable command line or API calls, with ID for the container's name
	Done    Stamp  `json:"done"`                      // the stamp that ends the operation's latency
	Means   string `json:"means" is:"safe"`           // the meaning of Done
	Absent  string `json:"absent,omitempty"`          // why the target lacks the operation
}

// Stamp is the name of a moment of an operation.
type Stamp string

// Moments of an operation. An operation may lack some of them.
const (
	StampReturned Stamp = "returned" // the command exited, or the API call replied
	StampRunning  Stamp = "running"  // the runtime reported the state running (or created, stopped)
	StampFirst    Stamp = "first"    // the workload executed its first instruction
	StampSeen     Stamp = "seen"     // the workload's first output reached the host
	StampExited   Stamp = "exited"   // the workload's process had ended

	// For a pod: when the API server of its cluster reported the event, so not before it.
	StampScheduled Stamp = "scheduled" // assigned to a node
	StampSandbox   Stamp = "sandbox"   // the sandbox existed
	StampReady     Stamp = "ready"     // the condition Ready was true; without a cluster: the first successful poll from outside
	StampGone      Stamp = "gone"      // the object was deleted
	// The same by the node's engine, if the node is this machine.
	StampNodeSandbox Stamp = "node-sandbox"
	StampNodeStarted Stamp = "node-started"
)

// Stamps are all stamps in their usual order.
var Stamps = []Stamp{StampReturned, StampScheduled, StampNodeSandbox, StampSandbox, StampNodeStarted, StampRunning, StampFirst, StampSeen, StampReady, StampExited, StampGone}

// Failure is the reason why an operation has no time.
type Failure struct {
	Kind    string `json:"kind" is:"needed,safe"`               // see the Fail constants
	Detail  string `json:"detail"`                              // one line for people
	Command string `json:"command,omitempty" is:"kind=command"` // the failed command, pasteable
	Exit    int    `json:"exit,omitempty" is:"any"`             // exit code, 128+n for signal n
	Output  string `json:"output,omitempty"`                    // its output, cut to a few KiB
	Advice  string `json:"advice,omitempty"`                    // what to do, if more specific than the advice by kind
}

// Kinds of failure.
const (
	FailExit        = "exit"        // the command exited non-zero
	FailExec        = "exec"        // the command could not be executed
	FailTimeout     = "timeout"     // timed out
	FailState       = "state"       // the runtime's state contradicts success, or is unreadable
	FailWorkload    = "workload"    // the workload did not run, or did not end as requested
	FailError       = "error"       // an API call returned an error
	FailInterrupted = "interrupted" // the run was interrupted
)

// Role is the component that a cost belongs to.
type Role string

// Roles of processes outside of sandboxes.
const (
	RoleDaemon   Role = "daemon"   // the engine's daemon: dockerd, containerd, crio, isulad
	RoleShim     Role = "shim"     // one per container or pod: containerd-shim-*, isulad-shim
	RoleMonitor  Role = "monitor"  // conmon
	RoleVMM      Role = "vmm"      // qemu, cloud-hypervisor, firecracker
	RoleVirtiofs Role = "virtiofs" // virtiofsd
)
