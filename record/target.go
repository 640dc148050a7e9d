package record

// Target describes one thing that was weighed, or that could not be.
type Target struct {
	Type        Type                 `json:"type"`
	Name        string               `json:"name" is:"needed,safe"` // as in the plan: "runc", "docker/crun"
	Kind        string               `json:"kind" is:"safe"`        // "host", "floor", "oci", "docker", …
	Version     string               `json:"version,omitempty" is:"safe"`
	Path        string               `json:"path,omitempty" is:"kind=path"` // the program, where there is one
	Digest      string               `json:"digest,omitempty" is:"safe"`
	SpecVersion string               `json:"spec_version,omitempty" is:"safe"` // ociVersion written into its bundles
	Clock       string               `json:"clock" is:"safe"`                  // "host": the workload's CLOCK_MONOTONIC is the host's; "guest": it is not
	Operations  map[string]Operation `json:"operations" is:"safekeys"`
	Notes       []string             `json:"notes,omitempty"`                // what was needed to make it work here
	Config      map[string]string    `json:"config,omitempty" is:"safekeys"` // facts that change what was weighed
	Kubernetes  *Kubernetes          `json:"kubernetes,omitempty"`           // what a cluster says of it; nil where there is none
}

// Kubernetes is what the objects of a cluster say of pods that were weighed.
type Kubernetes struct {
	RuntimeClass string   `json:"runtime_class,omitempty" is:"label,safe"` // its name; "" where pods have none
	Handler      string   `json:"handler,omitempty" is:"label,safe"`       // that it names
	Overhead     *Amounts `json:"overhead,omitempty"`                      // overhead.podFixed that it declares; nil: none
	Scheduling   string   `json:"scheduling,omitempty"`                    // of it, as JSON; "" for none
	Allocatable  *Amounts `json:"allocatable,omitempty"`                   // what the node gives to pods; nil where tare runs on no node of the cluster
}

// Amounts are those of what the scheduler counts.
type Amounts struct {
	CPU    int64 `json:"cpu"` // thousandths
	Memory int64 `json:"memory" is:"bytes"`
}

// Operation says what was timed: the definition printed with every result.
type Operation struct {
	Command string `json:"command" is:"kind=command"` // pasteable command line or API calls, with ID for the container's name
	Done    Stamp  `json:"done"`                      // the stamp that ends the operation's latency
	Means   string `json:"means" is:"safe"`           // the same in words
	Absent  string `json:"absent,omitempty"`          // why the target has no such operation
}

// Stamp names a moment of an operation.
type Stamp string

// The moments of an operation. Not every operation has each of them.
const (
	StampReturned Stamp = "returned" // the command exited, or the API call replied
	StampRunning  Stamp = "running"  // the runtime's own state said "running" (or created, stopped)
	StampFirst    Stamp = "first"    // the workload executed its first instruction
	StampSeen     Stamp = "seen"     // the workload's first output reached the host
	StampExited   Stamp = "exited"   // the workload's process was gone

	// Of a pod, as the API server of its cluster told: no earlier than they happened.
	StampScheduled Stamp = "scheduled" // it had a node
	StampSandbox   Stamp = "sandbox"   // its sandbox was there
	StampReady     Stamp = "ready"     // its condition Ready was true; without a cluster: it answered the first time as it should when it was asked from outside
	StampGone      Stamp = "gone"      // it was deleted, and no object any more
	// The same as the node's own engine says, where that is on this machine.
	StampNodeSandbox Stamp = "node-sandbox"
	StampNodeStarted Stamp = "node-started"
)

// Stamps are all of them, in the order in which they usually come.
var Stamps = []Stamp{StampReturned, StampScheduled, StampNodeSandbox, StampSandbox, StampNodeStarted, StampRunning, StampFirst, StampSeen, StampReady, StampExited, StampGone}

// Failure says why an operation gives no time.
type Failure struct {
	Kind    string `json:"kind" is:"needed,safe"`               // see the Fail constants
	Detail  string `json:"detail"`                              // one line for people
	Command string `json:"command,omitempty" is:"kind=command"` // what was tried, pasteable
	Exit    int    `json:"exit,omitempty" is:"any"`             // exit code, 128+n for signal n
	Output  string `json:"output,omitempty"`                    // what came back, cut to a few KiB
	Advice  string `json:"advice,omitempty"`                    // what to do about it, where more is known than by the kind
}

// Kinds of failure.
const (
	FailExit        = "exit"        // the command exited non-zero
	FailExec        = "exec"        // the command could not be executed
	FailTimeout     = "timeout"     // not done within the time-out
	FailState       = "state"       // the runtime's own state contradicts success, or could not be read
	FailWorkload    = "workload"    // the workload did not run, or did not end as told
	FailError       = "error"       // an API call replied with an error
	FailInterrupted = "interrupted" // tare was told to stop
)

// Role is whose cost something is.
type Role string

// The roles of a target's own processes.
const (
	RoleDaemon   Role = "daemon"   // the engine's daemon: dockerd, containerd, crio, isulad
	RoleShim     Role = "shim"     // one for each container or pod: containerd-shim-*, isulad-shim
	RoleMonitor  Role = "monitor"  // conmon
	RoleVMM      Role = "vmm"      // qemu, cloud-hypervisor, firecracker
	RoleVirtiofs Role = "virtiofs" // virtiofsd
)
