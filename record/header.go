package record

import (
	"encoding/json"
	"slices"
	"time"
)

// Types of line that all records have.
const (
	TypeHeader  Type = "header"
	TypeTarget  Type = "target"
	TypeNode    Type = "node"
	TypeFinding Type = "finding"
	TypeEnd     Type = "end"
	TypeLabel   Type = "label"
)

// Header is the first line of a record.
type Header struct {
	Type        Type            `json:"type"`
	Schema      int             `json:"schema" is:"min=1"`
	RunID       string          `json:"run_id" is:"kind=id"`
	Experiment  string          `json:"experiment" is:"safe"`      // instrument, named like its command
	Started     time.Time       `json:"started,omitzero"`          // wall-clock time, for display only
	Command     []string        `json:"command" is:"kind=command"` // tare's command line
	Version     string          `json:"tare_version" is:"safe"`
	Plan        json.RawMessage `json:"plan"` // plan with all defaults filled in
	Of          *Part           `json:"of,omitempty"`
	Workload    *Workload       `json:"workload,omitempty"`   // nil: tare's probe
	Neighbours  []Workload      `json:"neighbours,omitempty"` // images of the neighbours, in plan order
	Environment Environment     `json:"environment"`
}

// Planned are the plan options that most instruments share. Missing or malformed options are
// zero.
type Planned struct {
	Title  string
	Rounds int
	Seed   uint64
	Cache  Cached
}

// Cached is "cold" if the page cache was dropped before each timed operation, else "".
type Cached string

// UnmarshalText accepts "cold" and converts other values to "". Some instruments have an option
// with the same name and another meaning.
func (c *Cached) UnmarshalText(text []byte) error {
	if *c = ""; string(text) == "cold" {
		*c = "cold"
	}
	return nil
}

// Planned returns the common options of the header's plan.
func (h *Header) Planned() (p Planned) {
	_ = json.Unmarshal(h.Plan, &p) // malformed options are skipped
	return p
}

// Workload is the user's program that ran on every target instead of the probe. Values of
// environment variables are not recorded.
type Workload struct {
	Source  string   `json:"source,omitempty" is:"kind=text"`  // origin of the image, "docker: redis:7"; "" for tare's image
	Digest  string   `json:"digest,omitempty" is:"kind=id"`    // configuration digest of the user's image, "sha256:…"
	Image   string   `json:"image" is:"kind=id"`               // loaded image: the user's image with the probe as a wrapper of its command
	Command []string `json:"command" is:"kind=command"`        // program and arguments
	Host    []string `json:"host,omitempty" is:"kind=command"` // program and arguments for a plain process on the host
	Env     []string `json:"env,omitempty" is:"kind=text"`     // names of environment variables
	Mounts  []string `json:"mounts,omitempty" is:"kind=path"`  // SOURCE:DESTINATION[:ro]
	User    string   `json:"user" is:"kind=text"`              // UID:GID
	Dir     string   `json:"dir" is:"kind=path"`               // working directory
	Stop    string   `json:"stop,omitempty" is:"kind=text"`    // stop signal, "QUIT" or a number; "" for TERM
}

// Part identifies a measure of a plan file.
type Part struct {
	Plan        string   `json:"plan"` // name of the plan
	Description string   `json:"description,omitempty"`
	Source      string   `json:"source,omitempty"`               // publication whose tables the plan reproduces
	Measure     int      `json:"measure" is:"min=1,max=65536"`   // index of the measure, starting at 1
	Measures    int      `json:"measures" is:"min=1,max=65536"`  // number of measures in the plan
	Flags       []string `json:"flags,omitempty" is:"safe,name"` // command-line flags that override the plan
}

// Environment describes the machine: all properties that can change a figure of the same target.
// Unknown fields are empty.
type Environment struct {
	Kernel      string            `json:"kernel" is:"safe"` // uname release
	KernelBuild string            `json:"kernel_build,omitempty" is:"safe"`
	OS          string            `json:"os,omitempty" is:"safe"` // PRETTY_NAME
	Arch        string            `json:"arch" is:"safe"`
	CPUModel    string            `json:"cpu_model,omitempty" is:"safe"`
	CPUs        int               `json:"cpus"`                         // CPUs available to this process
	Governor    string            `json:"governor,omitempty" is:"safe"` // scaling governor; "" if there is none
	Memory      int64             `json:"memory"`                       // MemTotal, bytes
	Swap        int64             `json:"swap"`
	Virtual     string            `json:"virtual,omitempty" is:"safe"` // hypervisor, if known
	Cgroup      string            `json:"cgroup" is:"safe"`            // "v1", "v2", "hybrid", "none"
	Controllers []string          `json:"controllers,omitempty" is:"safe"`
	Mitigations map[string]string `json:"mitigations,omitempty" is:"safe,safekeys"` // /sys/devices/system/cpu/vulnerabilities
	MissingCaps []string          `json:"missing_capabilities,omitempty" is:"safe"`
	RootFS      string            `json:"root_fs,omitempty" is:"safe"` // file system type of the run's directory
	ClockSource string            `json:"clock_source,omitempty" is:"safe"`
	Lanes       string            `json:"lanes,omitempty" is:"safe"` // scheduling of tare's lanes: "SCHED_FIFO", "nice -20" or "ordinary"
	LoadStart   float64           `json:"load_start" is:"any"`
}

// Node is a reading of the whole machine between two rounds.
type Node struct {
	Type  Type    `json:"type"`
	Time  int64   `json:"time"` // ns, CLOCK_MONOTONIC
	Round int     `json:"round" is:"round"`
	Phase Phase   `json:"phase"`
	Lanes int     `json:"lanes"` // lanes of the round's batches
	Load1 float64 `json:"load1"`
	// Shares of CPU time over all CPUs since the previous reading, 0 to 1. Known is false for
	// the first reading.
	Known     bool    `json:"known"`
	Busy      float64 `json:"busy" is:"share"`
	Steal     float64 `json:"steal" is:"share"`
	PSICPU    float64 `json:"psi_cpu" is:"share"` // share of time in which some task waited for a CPU
	PSIMemory float64 `json:"psi_memory" is:"share"`
	PSIIO     float64 `json:"psi_io" is:"share"`
	HavePSI   bool    `json:"have_psi"`
}

// Finding is a caveat about a result, with advice. Reports print it, and scripts can check its
// code.
type Finding struct {
	Type    Type   `json:"type"`
	Code    string `json:"code" is:"needed,safe"` // stable, kebab-case: "drift", "steal", "failed-operations"
	Level   string `json:"level" is:"safe"`       // "note", "warning", "error"
	Target  string `json:"target,omitempty" is:"safe"`
	Op      string `json:"op,omitempty" is:"safe"`
	Lanes   int    `json:"lanes,omitempty"`
	Message string `json:"message"`
	Advice  string `json:"advice"`
	Tried   string `json:"tried,omitempty" is:"kind=command"` // first command that failed, ready to paste
}

// End is the last line of a record. A record without it was cut off.
type End struct {
	Type     Type   `json:"type"`
	Status   string `json:"status" is:"needed,safe"` // "done", "interrupted", "failed"; "skipped": the record has no measurements
	Why      string `json:"why,omitempty"`           // reason why the run stopped: "rounds", "precision reached", "budget spent", …
	Batches  int    `json:"batches"`
	Failures int    `json:"failures"`
	Elapsed  int64  `json:"elapsed"` // ns
}

// Label is a key and a value that a user adds to a finished record, such as a commit. Labels
// follow all other lines, including the end mark. The last value of a key wins. An empty value
// removes the label.
type Label struct {
	Type  Type   `json:"type"`
	Key   string `json:"key" is:"needed,name,safe"`
	Value string `json:"value" is:"label,kind=label"`
}

// Labelled returns the current labels, with one entry per key.
func (r *Record) Labelled() (out []Label) {
	for _, l := range r.Labels {
		if i := slices.IndexFunc(out, func(o Label) bool { return o.Key == l.Key }); i >= 0 {
			out = slices.Delete(out, i, i+1)
		}
		if l.Value != "" {
			out = append(out, l)
		}
	}
	return out
}
