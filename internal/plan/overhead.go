package plan

import (
	"time"

	"github.com/tare-bench/tare/internal/subject"
)

// Overhead asks whose memory and CPU a sandbox uses and which cgroup is charged.
type Overhead struct {
	Title     string         `json:"title,omitempty" yaml:"title"`
	Targets   []string       `json:"targets" yaml:"targets"` // as of Lifecycle
	Missing   Missing        `json:"missing,omitempty" yaml:"missing"`
	Via       []string       `json:"via,omitempty" yaml:"via"`
	Engines   Engines        `json:"engines,omitempty" yaml:"engines"`
	Phases    []string       `json:"phases" yaml:"phases"`       // see ParsePhase; idle is put first where it is missing, since loads are compared with it; loads run at the smallest count of Sandboxes
	Sandboxes []int          `json:"sandboxes" yaml:"sandboxes"` // counts, ascending; each is held idle for Hold
	Rounds    int            `json:"rounds" yaml:"rounds"`
	Hold      time.Duration  `json:"hold" yaml:"hold"`         // how long a phase is watched; a fio load is watched until it ends
	Interval  time.Duration  `json:"interval" yaml:"interval"` // between samples
	Settle    time.Duration  `json:"settle" yaml:"settle"`     // at most, until the node stops changing before a reading
	Budget    time.Duration  `json:"budget" yaml:"budget"`
	Timeout   time.Duration  `json:"timeout" yaml:"timeout"` // of one operation on one sandbox; a fio load has Patience
	Patience  time.Duration  `json:"patience" yaml:"patience"`
	Seed      uint64         `json:"seed" yaml:"seed"`
	Limits    subject.Limits `json:"limits" yaml:"limits"` // of every container; none by default
	Check     *PodFixed      `json:"check,omitempty" yaml:"check"`
}

// PodFixed is a RuntimeClass's overhead.podFixed. A plan writes it in Kubernetes'
// quantities, {cpu: 250m, memory: 160Mi}.
type PodFixed struct {
	CPU    int64 `json:"cpu" yaml:"cpu"`       // milli-CPUs
	Memory int64 `json:"memory" yaml:"memory"` // bytes
}

// PhaseKind is what a phase does inside the sandboxes.
type PhaseKind string

// The kinds of phase.
const (
	PhaseIdle PhaseKind = "idle" // nothing
	PhaseFio  PhaseKind = "fio"  // random writes of a file of Bytes: "10M", "1G"
	PhaseHold PhaseKind = "hold" // the probe holds Bytes of anonymous memory: "hold 64MiB"
	PhaseSpin PhaseKind = "spin" // the probe uses CPUs: "spin 0.5cpu"
)

// Phase is a phase, parsed.
type Phase struct {
	Name  string // as it was written, cleaned
	Kind  PhaseKind
	Bytes int64
	CPUs  float64
}

// DefaultsOfOverhead are the settings of an overhead plan that says nothing.
func DefaultsOfOverhead() Overhead {
	return Overhead{
		Targets: []string{}, Missing: MissingFail,
		Phases: []string{"idle"}, Sandboxes: []int{1, 5, 20}, Rounds: 3,
		Hold: 10 * time.Second, Interval: 100 * time.Millisecond, Settle: 3 * time.Second,
		Budget: 2 * time.Hour, Timeout: time.Minute, Patience: 30 * time.Minute,
	}
}
