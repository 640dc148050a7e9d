package overhead

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// Judgement is the evaluation of an overhead run.
type Judgement struct {
	Record   *record.Record
	Plan     Options
	Targets  []record.Target
	Tables   []Table        // one per phase and number of sandboxes, in the order of the run
	Ratios   figure.Set     // per phase, relative to the baseline
	Around   figure.Set     // of targets read before their first and after their last sandbox
	Requests figure.Set     // resource requests of a pod, if the plan limits one
	Scaling  []Scaling      // one per target with more than one number of sandboxes
	Classes  []RuntimeClass // one per target with overhead
	Check    []Check        // of the overhead that the plan asks to check
	Findings finding.List
	Failed   int // phases without figures
	Total    int

	visits       []*ledger.Visit
	phases       []*ledger.Phase
	withoutRatio int // rounds left out of ratios: negative values, or a baseline of 0 or less
}

// Step is a phase with a number of sandboxes.
type Step struct {
	Phase     string
	Sandboxes int
}

// where describes the step for use in a sentence.
func (s Step) where() string {
	return fmt.Sprintf("phase %s with %s", s.Phase, page.Sandboxes(s.Sandboxes))
}

// heading describes the step for use as a name.
func (s Step) heading() string {
	return page.Heading(s.Phase) + ", " + page.Sandboxes(s.Sandboxes)
}

// labels returns the labels of a target's figures.
func (s Step) labels(target string, more ...string) figure.Labels {
	return figure.Of(append([]string{"target", target, "phase", s.Phase, "sandboxes", strconv.Itoa(s.Sandboxes)}, more...)...)
}

// Table holds one step.
type Table struct {
	Step
	Command string // of the load
	Cells   []Cell // in the order of Targets; cells without a value are missing
}

// Cell is one target in one step.
type Cell struct {
	Step
	Target  string
	Rounds  int // with figures
	Failed  int
	Failure *record.Failure // the first failure
	// Ledger is that of the median round by Sum, so that its rows add up. With an even
	// number of rounds it is the lower middle.
	Ledger ledger.Ledger
	All    figure.Set // figures over the rounds, then those of Ledger
	Series figure.Set // those of All over time; CPU and disk bytes are rates
	Errors int64      // failed requests of a phase load

	closed []*ledger.Phase // phases with figures, including those not read completely
	counts []*ledger.Phase // the subset of closed behind the figures, in the order of rounds
}

// Scaling is the cost of one more sandbox: the slope of a line through the idle
// phases of all rounds and counts.
type Scaling struct {
	Target string
	Counts []int
	// Slopes are the costs of one more sandbox, in the order of perSandbox. Each is followed by its
	// intercept: the value of the line at zero sandboxes. The reasons of a slope list what its
	// interval does not cover: values left out, or too few rounds. Its verdict is set if the points
	// are not linear, which means that a robust slope lies outside the interval.
	Slopes figure.Set
	// Fit is how many more sandboxes the node can hold. Two limits apply: available memory, divided
	// by the slope of total with its interval, and the process limit. Fit is unknown if either limit
	// is unknown, or with fewer than 3 rounds. Its reasons state why it is unknown, or which limit
	// applies.
	Fit figure.Figure
}

// slope returns the cost of one more sandbox in one quantity.
func (s *Scaling) slope(of string) *figure.Figure { return s.Slopes.Of("per-sandbox", "of", of) }

// RuntimeClass is a recommended pod overhead.
type RuntimeClass struct {
	Target  string
	Handler string
	Memory  int64    // bytes, rounded up according to Rule
	CPU     int64    // milli-CPUs
	Open    bool     // a sandbox may exceed Memory if the residual is included
	Rule    []string // the rule as text, with the figures used
	YAML    string
	Not     string // why YAML is empty; "" if it is not
}

// class returns the recommendation for a target, or nil.
func (j *Judgement) class(target string) *RuntimeClass {
	return ledger.Find(j.Classes, func(c *RuntimeClass) bool { return c.Target == target })
}

// Check is the result of checking an existing pod overhead.
type Check struct {
	Target string
	Memory int64 // as configured
	CPU    int64
	Answer Answer
	Phases []CheckPhase
}

// Answer is the result of checking a pod overhead.
type Answer string

// The answers. NotShown means that nothing was measured.
const (
	Enough    Answer = "enough"
	NotEnough Answer = "not enough"
	NotShown  Answer = "not shown"
)

// answers are in the order of their precedence.
var answers = []Answer{NotEnough, NotShown, Enough}

// enough converts the result of a comparison to an answer. It returns NotShown if shown is false.
func enough(shown, it bool) Answer {
	switch {
	case !shown:
		return NotShown
	case it:
		return Enough
	}
	return NotEnough
}

// and returns the worse of two answers.
func (a Answer) and(b Answer) Answer {
	return answers[min(slices.Index(answers, a), slices.Index(answers, b))]
}

// CheckPhase is the maximum that a phase needed per sandbox in any round.
type CheckPhase struct {
	Step
	Rounds int     // measured rounds; 0 if left out, if all failed, or if not read completely
	Memory int64   // bytes
	CPU    float64 // milli-CPUs
	Open   string  // the residual part of memory, if it makes Memory exceed the configured value
	// MemoryAnswer and CPUAnswer report whether each resource is sufficient. CPUAnswer is NotShown if the
	// phase was too short. It is also NotShown if the sandbox's CPU time is unknown, or not separable from
	// the guest's.
	MemoryAnswer, CPUAnswer Answer
}

// Result returns the failed and total phases, and the findings.
func (j *Judgement) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Findings
}
