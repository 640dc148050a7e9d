// Package plan is what a run is asked to do: the types, their defaults, and
// the YAML file that holds them. A mistake in a file is reported with file,
// line and column. The resolved plan, every default filled in, goes into the
// record, so that a record says all that is needed to do the run again.
package plan

import (
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/subject"
)

// Version is the version of the plan format.
const Version = 1

// Plan is one file: what to measure, in order.
type Plan struct {
	Version     int       `json:"version" yaml:"version"`
	Name        string    `json:"name" yaml:"name"`
	Description string    `json:"description,omitempty" yaml:"description"`
	Source      string    `json:"source,omitempty" yaml:"source"` // the publication it reproduces
	Measure     []Measure `json:"measure" yaml:"measure"`
}

// Measure is one experiment of a plan. Exactly one field is set.
type Measure struct {
	Lifecycle *Lifecycle `json:"lifecycle,omitempty" yaml:"lifecycle"`
	Overhead  *Overhead  `json:"overhead,omitempty" yaml:"overhead"`
	Storage   *Storage   `json:"storage,omitempty" yaml:"storage"`
	Startup   *Startup   `json:"startup,omitempty" yaml:"startup"`
	BPF       *BPF       `json:"bpf,omitempty" yaml:"bpf"`
}

// Lifecycle asks how long each operation takes on each target.
type Lifecycle struct {
	Title     string         `json:"title,omitempty" yaml:"title"`       // above its report
	Targets   []string       `json:"targets" yaml:"targets"`             // names, or name=path for a runtime; empty: all that are found
	Missing   Missing        `json:"missing,omitempty" yaml:"missing"`   // what to do about a target that cannot be weighed here; empty: MissingFail
	Via       []string       `json:"via,omitempty" yaml:"via"`           // "api", "cli": how engines that have both are driven; empty: each its usual way
	Engines   Engines        `json:"engines,omitempty" yaml:"engines"`   // how engines are reached
	Baseline  string         `json:"baseline,omitempty" yaml:"baseline"` // the target all others are compared with; empty: the first runtime
	Subject   string         `json:"subject,omitempty" yaml:"subject"`   // the target whose column of the iSulad form is compared with every other; empty: the others with the baseline
	Lanes     []int          `json:"lanes" yaml:"lanes"`                 // the batch sizes to sweep
	Ops       []subject.Op   `json:"ops" yaml:"ops"`
	Rounds    int            `json:"rounds" yaml:"rounds"`                 // at least; Precision may add more
	Warmup    int            `json:"warmup" yaml:"warmup"`                 // rounds that are not counted
	Precision float64        `json:"precision,omitempty" yaml:"precision"` // 0.05: go on until every interval is within ±5 %; 0: exactly Rounds
	Budget    time.Duration  `json:"budget" yaml:"budget"`                 // no new round is begun after it
	Timeout   time.Duration  `json:"timeout" yaml:"timeout"`               // of one operation on one lane
	Seed      uint64         `json:"seed" yaml:"seed"`                     // of the order of targets in each round; 0: taken from the clock and recorded
	Limits    subject.Limits `json:"limits" yaml:"limits"`
}

// Missing says what is done about a target of the plan that cannot be weighed
// on this machine.
type Missing string

// What can be done about it.
const (
	MissingFail Missing = "fail" // nothing is weighed
	MissingSkip Missing = "skip" // the others are weighed, and a finding says why it is missing
)

// Engines says how engines are reached, by an engine's name ("docker",
// "cri+containerd") or a target's ("docker/runc"). What stands under the target
// is taken before what stands under its engine.
type Engines map[string]subject.Engine

// Of returns what holds for a target.
func (e Engines) Of(name string) subject.Engine {
	engine, _, _ := strings.Cut(name, "/")
	plain, _, _ := strings.Cut(engine, "+") // docker+cli is docker, another way
	merged := e[name].Over(e[engine])
	if plain != "cri" {
		merged = merged.Over(e[plain])
	}
	return merged
}
