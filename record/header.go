package record

import (
	"encoding/json"
	"time"
)

// The types of line that all records have.
const (
	TypeHeader  Type = "header"
	TypeTarget  Type = "target"
	TypeNode    Type = "node"
	TypeFinding Type = "finding"
	TypeEnd     Type = "end"
)

// Header opens a record.
type Header struct {
	Type        Type            `json:"type"`
	Schema      int             `json:"schema" is:"min=1"`
	RunID       string          `json:"run_id"`
	Experiment  string          `json:"experiment"` // "lifecycle", "overhead", "storage", "startup", "bpf"
	Started     time.Time       `json:"started"`    // wall clock, for people only
	Command     []string        `json:"command"`    // tare's own command line
	Version     string          `json:"tare_version"`
	Plan        json.RawMessage `json:"plan"` // resolved: every default filled in
	Environment Environment     `json:"environment"`
}

// Environment is the machine a record was made on: all that can change a
// figure without the target having changed. A field that could not be read is
// empty; it is never guessed.
type Environment struct {
	Kernel      string            `json:"kernel"` // uname release
	KernelBuild string            `json:"kernel_build,omitempty"`
	OS          string            `json:"os,omitempty"` // PRETTY_NAME
	Arch        string            `json:"arch"`
	CPUModel    string            `json:"cpu_model,omitempty"`
	CPUs        int               `json:"cpus"`               // usable by this process
	Governor    string            `json:"governor,omitempty"` // scaling governor, "" where the machine has none
	Memory      int64             `json:"memory"`             // bytes, MemTotal
	Swap        int64             `json:"swap"`
	Virtual     string            `json:"virtual,omitempty"` // hypervisor, as far as it shows
	Cgroup      string            `json:"cgroup"`            // "v1", "v2", "hybrid", "none"
	Controllers []string          `json:"controllers,omitempty"`
	Mitigations map[string]string `json:"mitigations,omitempty"` // /sys/devices/system/cpu/vulnerabilities
	MissingCaps []string          `json:"missing_capabilities,omitempty"`
	RootFS      string            `json:"root_fs,omitempty"` // file system type under the run's folder
	ClockSource string            `json:"clock_source,omitempty"`
	Lanes       string            `json:"lanes,omitempty"` // how tare's lanes wait: "SCHED_FIFO", "nice -20" or "ordinary"
	LoadStart   float64           `json:"load_start" is:"any"`
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
	Busy      float64 `json:"busy" is:"share"`
	Steal     float64 `json:"steal" is:"share"`
	PSICPU    float64 `json:"psi_cpu" is:"share"` // share of the time some task waited for a CPU
	PSIMemory float64 `json:"psi_memory" is:"share"`
	PSIIO     float64 `json:"psi_io" is:"share"`
	HavePSI   bool    `json:"have_psi"`
}

// Finding is something the reader of a result has to know, with advice. It is
// data: reports print it, and scripts can act on its code.
type Finding struct {
	Type    Type   `json:"type"`
	Code    string `json:"code" is:"needed"` // stable, kebab-case: "drift", "steal", "failed-operations"
	Level   string `json:"level"`            // "note", "warning", "error"
	Target  string `json:"target,omitempty"`
	Op      string `json:"op,omitempty"`
	Lanes   int    `json:"lanes,omitempty"`
	Message string `json:"message"`
	Advice  string `json:"advice"`
	Tried   string `json:"tried,omitempty"` // the command that failed first, pasteable
}

// End closes a record. A record without one was cut off.
type End struct {
	Type     Type   `json:"type"`
	Status   string `json:"status" is:"needed"` // "done", "interrupted", "failed"
	Why      string `json:"why,omitempty"`      // why it stopped: "rounds", "precision reached", "budget spent", …
	Batches  int    `json:"batches"`
	Failures int    `json:"failures"`
	Elapsed  int64  `json:"elapsed"` // ns
}
