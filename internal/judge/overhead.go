package judge

import (
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

// Overhead is the judgement of an overhead run.
type Overhead struct {
	Plan     plan.Overhead    `json:"plan"`
	Targets  []record.Target  `json:"targets"`
	Tables   []OverheadTable  `json:"tables"`          // one for each phase and count of sandboxes, in the order of the run
	Scaling  []Scaling        `json:"scaling"`         // one a target with more than one count of sandboxes
	Classes  []RuntimeClass   `json:"runtime_classes"` // one a target that has overhead
	Check    []Check          `json:"check,omitempty"` // of the overhead that the plan asks to check
	Findings []record.Finding `json:"findings"`
	Failed   int              `json:"failed"` // phases without figures
	Total    int              `json:"total"`
}

// OverheadTable is one phase at one count of sandboxes.
type OverheadTable struct {
	Phase     string         `json:"phase"`
	Sandboxes int            `json:"sandboxes"`
	Command   string         `json:"command,omitempty"` // of the load
	Cells     []OverheadCell `json:"cells"`             // in the order of Targets; those without a value are absent
}

// OverheadCell is one target in one phase.
type OverheadCell struct {
	Target  string          `json:"target"`
	Rounds  int             `json:"rounds"` // with figures
	Failed  int             `json:"failed"`
	Failure *record.Failure `json:"failure,omitempty"` // the first
	// Ledger is that of the median round: the one whose Sum is the median (the
	// lower middle of an even number), so that its rows add up.
	Ledger ledger.Ledger `json:"ledger"`
	// What the rounds spread over: bytes and CPUs, all roles but others.
	Sum      Interval `json:"sum"`
	Residual Interval `json:"residual"`
	CPU      Interval `json:"cpu"` // of all rows but others
	// Trace is the phase over time in the median round.
	Trace []Trace `json:"trace,omitempty"`
	// Told and Found are of calibrating loads: bytes or CPUs per sandbox.
	Told  float64 `json:"told,omitempty"`
	Found float64 `json:"found,omitempty"` // per sandbox, less what the idle phase had
}

// Trace is one series of a phase over time.
type Trace struct {
	Name   string    `json:"name"`  // of record's Series constants; CPU and bytes turned into rates
	Unit   string    `json:"unit"`  // "bytes", "cpus", "bytes/s", "load"
	Times  []float64 `json:"times"` // s since the phase began
	Values []float64 `json:"values"`
	Missed int       `json:"missed"`
}

// Scaling is what one more sandbox costs, from a line through the idle phases
// of all rounds and counts.
type Scaling struct {
	Target       string `json:"target"`
	Counts       []int  `json:"counts"`
	Points       int    `json:"points"`
	Memory       Slope  `json:"memory"`        // bytes a sandbox: all roles but others, without page cache
	Cache        Slope  `json:"cache"`         // bytes of page cache a sandbox, as charged
	Uncharged    Slope  `json:"uncharged"`     // bytes of kernel memory a sandbox that no cgroup of it is charged for
	DaemonMemory Slope  `json:"daemon_memory"` // bytes
	DaemonCPU    Slope  `json:"daemon_cpu"`    // CPUs a sandbox, idle
	Total        Slope  `json:"total"`         // bytes a sandbox: Memory and Uncharged as one line
	// Fit is how many more sandboxes this node's available memory holds, with the
	// interval of Total's slope, or of Memory's where Total's is not wholly above
	// 0; Known false where neither's is, or with fewer than 3 rounds.
	Fit      int  `json:"fit"`
	FitLo    int  `json:"fit_lo"`
	FitHi    int  `json:"fit_hi"`
	FitKnown bool `json:"fit_known"`
	// FitChargedOnly says that Fit is Memory's: kernel memory that no cgroup is
	// charged for wavers too much to be in it, and fewer may fit.
	FitChargedOnly bool `json:"fit_charged_only,omitempty"`
}

// Slope is that of a fitted line, with an interval at [Confidence].
type Slope struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
	Known bool    `json:"known"`          // the interval exists: at least 3 points at 2 counts
	Fixed float64 `json:"fixed"`          // the line at no sandbox
	Bent  bool    `json:"bent,omitempty"` // a robust slope lies outside of the interval: the points lie on no line
	// Warnings say what the interval does not: values left out, or so few rounds.
	Warnings []string `json:"warnings,omitempty"`
}

// RuntimeClass is a recommended overhead.
type RuntimeClass struct {
	Target  string   `json:"target"`
	Handler string   `json:"handler"`
	Memory  int64    `json:"memory"` // bytes, rounded up as Rule says
	CPU     int64    `json:"cpu"`    // milli-CPUs
	Rule    []string `json:"rule"`   // in words, with the figures that entered
	YAML    string   `json:"yaml"`
}

// Check is what was found about an existing overhead.
type Check struct {
	Target string       `json:"target"`
	Memory int64        `json:"memory"` // as asked
	CPU    int64        `json:"cpu"`
	Enough bool         `json:"enough"`
	Phases []CheckPhase `json:"phases"`
}

// CheckPhase is what a phase needed, per sandbox.
type CheckPhase struct {
	Phase        string  `json:"phase"`
	Sandboxes    int     `json:"sandboxes"`
	Measured     bool    `json:"measured"` // false: left out, failed in all rounds, or not read whole; nothing is enough then
	Memory       int64   `json:"memory"`   // bytes
	CPU          float64 `json:"cpu"`      // milli-CPUs
	MemoryEnough bool    `json:"memory_enough"`
	CPUEnough    bool    `json:"cpu_enough"`
	CPUUnknown   bool    `json:"cpu_unknown,omitempty"` // too short a phase, which counts as enough; else the sandbox's CPU could not be told from its guest's, or was not read
}
