// Package record defines the file that holds everything a run saw.
//
// A record is append-only JSON Lines, plain or zstd-compressed: one header
// (schema version, plan, environment, targets), then every batch, or every
// reading and series, or every cell, as it happened, node readings and findings
// between them, and an end mark. Nothing is written twice and nothing is
// rewritten, so what a crash cut off still reads: a record without an end mark
// is a record of what was measured up to then. Reports are made from records and
// from nothing else.
//
// Every line is one JSON object whose "type" names what it is. Readers skip
// types and fields they do not know, so that a record written today opens in
// every later version; [Schema] grows only when an old field changes meaning.
//
// All times are CLOCK_MONOTONIC nanoseconds of the machine that ran the plan,
// and are comparable only within one record. The one wall-clock time is in the
// header, for people.
package record

import (
	"encoding/json"
	"time"
)

// Schema is the version of the format this package writes.
const Schema = 1

// Type names a line of a record.
type Type string

// The types of line, in the order a record holds them.
const (
	TypeHeader  Type = "header"
	TypeTarget  Type = "target"
	TypeBatch   Type = "batch"
	TypeNode    Type = "node"
	TypeFinding Type = "finding"
	TypeEnd     Type = "end"
)

// Header opens a record.
type Header struct {
	Type        Type            `json:"type"`
	Schema      int             `json:"schema"`
	RunID       string          `json:"run_id"`
	Experiment  string          `json:"experiment"` // "lifecycle", "overhead", "storage", "startup", "bpf"
	Started     time.Time       `json:"started"`    // wall clock, for people only
	Command     []string        `json:"command"`    // tare's own command line
	Version     string          `json:"tare_version"`
	Plan        json.RawMessage `json:"plan"` // resolved: every default filled in
	Environment Environment     `json:"environment"`
}

// Target describes one thing that was weighed, or that could not be.
type Target struct {
	Type        Type                 `json:"type"`
	Name        string               `json:"name"` // as in the plan: "runc", "docker/crun"
	Kind        string               `json:"kind"` // "host", "floor", "oci", "docker", …
	Version     string               `json:"version,omitempty"`
	Path        string               `json:"path,omitempty"` // the program, where there is one
	Digest      string               `json:"digest,omitempty"`
	SpecVersion string               `json:"spec_version,omitempty"` // ociVersion written into its bundles
	Clock       string               `json:"clock"`                  // "host": the workload's CLOCK_MONOTONIC is the host's; "guest": it is not
	Operations  map[string]Operation `json:"operations"`
	Notes       []string             `json:"notes,omitempty"`  // what was needed to make it work here
	Config      map[string]string    `json:"config,omitempty"` // facts that change what was weighed
}

// Operation says what was timed: the definition printed with every result.
type Operation struct {
	Command string `json:"command"`          // pasteable command line or API calls, with ID for the container's name
	Done    Stamp  `json:"done"`             // the stamp that ends the operation's latency
	Means   string `json:"means"`            // the same in words
	Absent  string `json:"absent,omitempty"` // why the target has no such operation
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
)

// Phase tells measured batches from those that are not counted.
type Phase string

// The phases of a run.
const (
	PhaseWarmup  Phase = "warmup"
	PhaseMeasure Phase = "measure"
)

// Batch is one release of N lanes of one operation on one target.
type Batch struct {
	Type     Type     `json:"type"`
	Phase    Phase    `json:"phase"`
	Round    int      `json:"round"` // from 0; warm-up rounds count on their own
	Order    int      `json:"order"` // this target's place in the round's random order
	Target   string   `json:"target"`
	Op       string   `json:"op"`
	Lanes    int      `json:"lanes"`             // N as planned
	Released int64    `json:"released"`          // ns, taken just before the release
	Samples  []Sample `json:"samples"`           // one per lane that was released
	Lost     int      `json:"lost,omitempty"`    // lanes not released because an earlier operation of theirs failed
	OwnCPU   int64    `json:"own_cpu,omitempty"` // ns of CPU that tare and its lanes used in the batch
	Roles    []Usage  `json:"roles,omitempty"`   // what the target's own processes used, by role
}

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

// Usage is what the processes of one role used in a batch. Memory is PSS, so
// that pages which processes share are counted once; before and after are read
// while nothing is released, and peak is the largest of them and of what was
// read in between.
type Usage struct {
	Role      Role  `json:"role"`
	Before    int   `json:"before"`           // processes before the batch
	After     int   `json:"after"`            // processes after it
	CPU       int64 `json:"cpu"`              // ns, from before to after, of those that are there after it
	PSSBefore int64 `json:"pss_before"`       // bytes
	PSSPeak   int64 `json:"pss_peak"`         // bytes
	PSSAfter  int64 `json:"pss_after"`        // bytes
	Unread    int   `json:"unread,omitempty"` // processes that could not be read: the figures lack them
}

// Sample is one timed operation. Times are ns of CLOCK_MONOTONIC, zero where
// the operation has no such stamp.
type Sample struct {
	Lane     int      `json:"lane"`              // from 0
	Start    int64    `json:"start"`             // the call was about to be made
	Spawned  int64    `json:"spawned,omitempty"` // the command's own exec had happened
	Returned int64    `json:"returned,omitempty"`
	Running  int64    `json:"running,omitempty"`
	First    int64    `json:"first,omitempty"`
	Seen     int64    `json:"seen,omitempty"`
	Exited   int64    `json:"exited,omitempty"`
	Guest    int64    `json:"guest,omitempty"`    // the workload's own clock where it is not the host's; never subtracted from ours
	UserCPU  int64    `json:"user_cpu,omitempty"` // ns, of the command and the children it waited for
	SysCPU   int64    `json:"sys_cpu,omitempty"`
	MaxRSS   int64    `json:"max_rss,omitempty"` // bytes, the largest of the command and those children
	Failure  *Failure `json:"failure,omitempty"`
}

// Failure says why an operation gives no time.
type Failure struct {
	Kind    string `json:"kind"`              // see the Fail constants
	Detail  string `json:"detail"`            // one line for people
	Command string `json:"command,omitempty"` // what was tried, pasteable
	Exit    int    `json:"exit,omitempty"`    // exit code, 128+n for signal n
	Output  string `json:"output,omitempty"`  // what came back, cut to a few KiB
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

// Time returns a stamp of the sample, ok false when it was not taken.
func (s *Sample) Time(stamp Stamp) (ns int64, ok bool) {
	switch stamp {
	case StampReturned:
		ns = s.Returned
	case StampRunning:
		ns = s.Running
	case StampFirst:
		ns = s.First
	case StampSeen:
		ns = s.Seen
	case StampExited:
		ns = s.Exited
	}
	return ns, ns != 0
}

// Latency returns the time from the sample's start to a stamp. A failed
// sample has no latency.
func (s *Sample) Latency(stamp Stamp) (d time.Duration, ok bool) {
	t, ok := s.Time(stamp)
	if !ok || s.Failure != nil {
		return 0, false
	}
	return time.Duration(t - s.Start), true
}

// Finding is something the reader of a result has to know, with advice. It is
// data: reports print it, and scripts can act on its code.
type Finding struct {
	Type    Type   `json:"type"`
	Code    string `json:"code"`  // stable, kebab-case: "drift", "steal", "failed-operations"
	Level   string `json:"level"` // "note", "warning", "error"
	Target  string `json:"target,omitempty"`
	Op      string `json:"op,omitempty"`
	Lanes   int    `json:"lanes,omitempty"`
	Message string `json:"message"`
	Advice  string `json:"advice"`
	Tried   string `json:"tried,omitempty"` // the command that failed first, pasteable
}

// Node is a reading of the whole machine, taken between rounds.
type Node struct {
	Type  Type    `json:"type"`
	Time  int64   `json:"time"` // ns, CLOCK_MONOTONIC
	Round int     `json:"round"`
	Phase Phase   `json:"phase"`
	Lanes int     `json:"lanes"` // of the round's batches
	Load1 float64 `json:"load1"`
	// Shares since the previous reading, 0 to 1, of all CPUs' time. Known is
	// false on the first reading, which has nothing before it.
	Known     bool    `json:"known"`
	Busy      float64 `json:"busy"`
	Steal     float64 `json:"steal"`
	PSICPU    float64 `json:"psi_cpu"` // share of the time some task waited for a CPU
	PSIMemory float64 `json:"psi_memory"`
	PSIIO     float64 `json:"psi_io"`
	HavePSI   bool    `json:"have_psi"`
}

// End closes a record. A record without one was cut off.
type End struct {
	Type     Type   `json:"type"`
	Status   string `json:"status"`        // "done", "interrupted", "failed"
	Why      string `json:"why,omitempty"` // why it stopped: "rounds", "precision reached", "budget spent", …
	Batches  int    `json:"batches"`
	Failures int    `json:"failures"`
	Elapsed  int64  `json:"elapsed"` // ns
}
