package record

import (
	"encoding/json"
	"slices"
	"time"
)

// The types of line that all records have.
const (
	TypeHeader  Type = "header"
	TypeTarget  Type = "target"
	TypeNode    Type = "node"
	TypeFinding Type = "finding"
	TypeEnd     Type = "end"
	TypeLabel   Type = "label"
)

// Header opens a record.
type Header struct {
	Type        Type            `json:"type"`
	Schema      int             `json:"schema" is:"min=1"`
	RunID       string          `json:"run_id" is:"kind=id"`
	Experiment  string          `json:"experiment" is:"safe"`      // the instrument, as its verb is called
	Started     time.Time       `json:"started,omitzero"`          // wall clock, for people only
	Command     []string        `json:"command" is:"kind=command"` // tare's own command line
	Version     string          `json:"tare_version" is:"safe"`
	Plan        json.RawMessage `json:"plan"` // resolved: every default filled in
	Of          *Part           `json:"of,omitempty"`
	Workload    *Workload       `json:"workload,omitempty"`   // nil: tare's probe
	Neighbours  []Workload      `json:"neighbours,omitempty"` // images that worked beside, in the plan's order
	Environment Environment     `json:"environment"`
}

// Planned is what is told of a plan whatever instrument it is of. What a plan does not
// have, or in another form, is zero.
type Planned struct {
	Title  string
	Rounds int
	Seed   uint64
	Cache  Cached
}

// Cached is "cold" where the page cache was dropped before whatever was timed; "" where
// it was left as it is, or the instrument's option is of something else.
type Cached string

// UnmarshalText takes that word and no other.
func (c *Cached) UnmarshalText(text []byte) error {
	if *c = ""; string(text) == "cold" {
		*c = "cold"
	}
	return nil
}

// Planned is that of the header's plan.
func (h *Header) Planned() (p Planned) {
	_ = json.Unmarshal(h.Plan, &p) // of another form, an option is passed over
	return p
}

// Workload is a program of the user's own, which every target ran in the probe's place.
// Of its variables the names are told and no value.
type Workload struct {
	Source  string   `json:"source,omitempty" is:"kind=text"`  // where the image is from, "docker: redis:7"; "" for tare's own
	Digest  string   `json:"digest,omitempty" is:"kind=id"`    // of the configuration of the user's image, "sha256:…"
	Image   string   `json:"image" is:"kind=id"`               // what was loaded: that image with the probe in front of its command
	Command []string `json:"command" is:"kind=command"`        // program and arguments
	Host    []string `json:"host,omitempty" is:"kind=command"` // the same of a plain process on the host
	Env     []string `json:"env,omitempty" is:"kind=text"`     // names
	Mounts  []string `json:"mounts,omitempty" is:"kind=path"`  // SOURCE:DESTINATION[:ro]
	User    string   `json:"user" is:"kind=text"`              // UID:GID
	Dir     string   `json:"dir" is:"kind=path"`               // that it begins in
	Stop    string   `json:"stop,omitempty" is:"kind=text"`    // the signal that stops it, "QUIT" or a number; "" for TERM
}

// Part says of a record which measure of a plan file it is of.
type Part struct {
	Plan        string   `json:"plan"` // its name
	Description string   `json:"description,omitempty"`
	Source      string   `json:"source,omitempty"`               // the publication whose tables the plan reproduces
	Measure     int      `json:"measure" is:"min=1,max=65536"`   // its place among them, from 1
	Measures    int      `json:"measures" is:"min=1,max=65536"`  // that the plan has
	Flags       []string `json:"flags,omitempty" is:"safe,name"` // of the command line that this measure took, over what the plan says
}

// Environment is the machine a record was made on: all that can change a
// figure without the target having changed. A field that could not be read is
// empty; it is never guessed.
type Environment struct {
	Kernel      string            `json:"kernel" is:"safe"` // uname release
	KernelBuild string            `json:"kernel_build,omitempty" is:"safe"`
	OS          string            `json:"os,omitempty" is:"safe"` // PRETTY_NAME
	Arch        string            `json:"arch" is:"safe"`
	CPUModel    string            `json:"cpu_model,omitempty" is:"safe"`
	CPUs        int               `json:"cpus"`                         // usable by this process
	Governor    string            `json:"governor,omitempty" is:"safe"` // scaling governor, "" where the machine has none
	Memory      int64             `json:"memory"`                       // bytes, MemTotal
	Swap        int64             `json:"swap"`
	Virtual     string            `json:"virtual,omitempty" is:"safe"` // hypervisor, as far as it shows
	Cgroup      string            `json:"cgroup" is:"safe"`            // "v1", "v2", "hybrid", "none"
	Controllers []string          `json:"controllers,omitempty" is:"safe"`
	Mitigations map[string]string `json:"mitigations,omitempty" is:"safe,safekeys"` // /sys/devices/system/cpu/vulnerabilities
	MissingCaps []string          `json:"missing_capabilities,omitempty" is:"safe"`
	RootFS      string            `json:"root_fs,omitempty" is:"safe"` // file system type under the run's folder
	ClockSource string            `json:"clock_source,omitempty" is:"safe"`
	Lanes       string            `json:"lanes,omitempty" is:"safe"` // how tare's lanes wait: "SCHED_FIFO", "nice -20" or "ordinary"
	LoadStart   float64           `json:"load_start" is:"any"`
}

// Node is a reading of the whole machine, taken between rounds.
type Node struct {
	Type  Type    `json:"type"`
	Time  int64   `json:"time"` // ns, CLOCK_MONOTONIC
	Round int     `json:"round" is:"round"`
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
	Code    string `json:"code" is:"needed,safe"` // stable, kebab-case: "drift", "steal", "failed-operations"
	Level   string `json:"level" is:"safe"`       // "note", "warning", "error"
	Target  string `json:"target,omitempty" is:"safe"`
	Op      string `json:"op,omitempty" is:"safe"`
	Lanes   int    `json:"lanes,omitempty"`
	Message string `json:"message"`
	Advice  string `json:"advice"`
	Tried   string `json:"tried,omitempty" is:"kind=command"` // the command that failed first, pasteable
}

// End closes a record. A record without one was cut off.
type End struct {
	Type     Type   `json:"type"`
	Status   string `json:"status" is:"needed,safe"` // "done", "interrupted", "failed"; "skipped": nothing of it is here
	Why      string `json:"why,omitempty"`           // why it stopped: "rounds", "precision reached", "budget spent", …
	Batches  int    `json:"batches"`
	Failures int    `json:"failures"`
	Elapsed  int64  `json:"elapsed"` // ns
}

// Label is what somebody said of a whole record once it was there, as the commit that
// it is of. It touches nothing that was measured: it is a line behind the others, even
// behind the end mark. Of a key that is given twice the later value counts, and an empty
// one takes it away.
type Label struct {
	Type  Type   `json:"type"`
	Key   string `json:"key" is:"needed,name,safe"`
	Value string `json:"value" is:"label,kind=label"`
}

// Labelled are the labels that hold, each key once.
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
