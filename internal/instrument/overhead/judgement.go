package overhead

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// Judgement is what can be said of what sandboxes add to a node.
type Judgement struct {
	Record   *record.Record
	Plan     Options
	Targets  []record.Target
	Tables   []Table        // one for each phase and count of sandboxes, in the order of the run
	Ratios   figure.Set     // of each phase, to the baseline
	Around   figure.Set     // of targets that were read before their first sandbox and after their last
	Requests figure.Set     // of a pod, where the plan limits one
	Scaling  []Scaling      // one a target with more than one count of sandboxes
	Classes  []RuntimeClass // one a target that has overhead
	Check    []Check        // of the overhead that the plan asks to check
	Findings []record.Finding
	Failed   int // phases without figures
	Total    int

	withoutRatio int // rounds of a ratio that were left out: of less than 0, or to 0 or less
}

// Table is one phase at one count of sandboxes.
type Table struct {
	Phase     string
	Sandboxes int
	Command   string // of the load
	Cells     []Cell // in the order of Targets; those without a value are absent
	All       figure.Set
}

// Cell is one target in one phase.
type Cell struct {
	Target  string
	Rounds  int // with figures
	Failed  int
	Failure *record.Failure // the first
	// Ledger is that of the median round: the one whose Sum is the median (the
	// lower middle of an even number), so that its rows add up.
	Ledger ledger.Ledger
	// What the rounds spread over, all roles but others.
	Sum      figure.Figure
	Residual figure.Figure
	CPU      figure.Figure
	// Series are the phase over time in the median round; CPU and bytes of disks
	// are rates.
	Series []figure.Figure
	// Expected is what a calibrating load was told to use, and Measured what a
	// sandbox had more than when idle: bytes or CPUs.
	Expected float64
	Measured float64
	// Spun is what a spinning load says itself that it used: less than Expected
	// where others took its CPUs. 0 where it was not asked.
	Spun float64
	// Of workloads that were asked: how much more memory (bytes) each has than when idle,
	// how many answers there were a second, of all together, and how many failed.
	Above, Requests figure.Figure
	Errors          int64

	closed []*closedPhase // with figures, also those that were not read whole
	counts []*closedPhase // of closed, those that the figures are of, in the order of rounds
}

// Scaling is what one more sandbox costs, from a line through the idle phases
// of all rounds and counts.
type Scaling struct {
	Target string
	Counts []int
	Slopes []Slope // in the order of perSandbox
	// Fit is how many more sandboxes this node holds: by its available memory, with
	// the interval of the slope of Total, and by how many processes it allows. It is
	// not known where one of them is not, or with fewer than 3 rounds; its Reasons
	// say why, and else which of the two bounds it.
	Fit figure.Figure
}

// Slope is what one more sandbox costs of one thing. Its Reasons are what the
// interval does not say: values left out, or so few rounds.
type Slope struct {
	figure.Figure
	Fixed float64 // the line at no sandbox
	Bent  bool    // a robust slope lies outside of the interval: the points lie on no line
}

// RuntimeClass is a recommended overhead.
type RuntimeClass struct {
	Target  string
	Handler string
	Memory  int64    // bytes, rounded up as Rule says
	CPU     int64    // milli-CPUs
	Open    bool     // with what is unexplained a sandbox may exceed Memory
	Rule    []string // in words, with the figures that entered
	YAML    string
	Not     string // why there is no YAML, "" where there is
}

// Check is what was found about an existing overhead.
type Check struct {
	Target string
	Memory int64 // as asked
	CPU    int64
	Answer Answer
	Phases []CheckPhase
}

// Answer is whether an overhead is enough.
type Answer string

// The answers. What was not measured is neither enough nor not.
const (
	Enough    Answer = "enough"
	NotEnough Answer = "not enough"
	NotShown  Answer = "not shown"
)

// enough is the answer of a comparison, where there was something to compare.
func enough(shown, it bool) Answer {
	switch {
	case !shown:
		return NotShown
	case it:
		return Enough
	}
	return NotEnough
}

// and is what two answers come to together.
func (a Answer) and(b Answer) Answer {
	for _, worse := range []Answer{NotEnough, NotShown} {
		if a == worse || b == worse {
			return worse
		}
	}
	return Enough
}

// CheckPhase is the most that a phase needed in any round, per sandbox.
type CheckPhase struct {
	Phase     string
	Sandboxes int
	Rounds    int     // that were measured; 0: left out, failed in all rounds, or not read whole
	Memory    int64   // bytes
	CPU       float64 // milli-CPUs
	Open      string  // what of the memory is unexplained, where with it Memory exceeds what was asked
	// Whether each is enough. That of CPU is not shown of a phase that was too
	// short, and where the sandbox's could not be read or told from its guest's.
	MemoryAnswer, CPUAnswer Answer
}

// Result is how many phases failed of how many, and what is to be mistrusted.
func (j *Judgement) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Findings
}
