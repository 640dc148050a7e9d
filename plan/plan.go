// Package plan is what a run is asked to do: the types, their defaults, and
// the YAML file that holds them. A mistake in a file is reported with file,
// line and column. The resolved plan, every default filled in, goes into the
// record, so that a record says all that is needed to do the run again.
package plan

import (
	"time"

	"github.com/tare-bench/tare/target"
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
}

// Lifecycle asks how long each operation takes on each target.
type Lifecycle struct {
	Targets   []string      `json:"targets" yaml:"targets"`             // names, or name=path for a runtime; empty: all that are found
	Baseline  string        `json:"baseline,omitempty" yaml:"baseline"` // the target all others are compared with; empty: the first runtime
	Lanes     []int         `json:"lanes" yaml:"lanes"`                 // the batch sizes to sweep
	Ops       []target.Op   `json:"ops" yaml:"ops"`
	Rounds    int           `json:"rounds" yaml:"rounds"`                 // at least; Precision may add more
	Warmup    int           `json:"warmup" yaml:"warmup"`                 // rounds that are not counted
	Precision float64       `json:"precision,omitempty" yaml:"precision"` // 0.05: go on until every interval is within ±5 %; 0: exactly Rounds
	Budget    time.Duration `json:"budget" yaml:"budget"`                 // no new round is begun after it
	Timeout   time.Duration `json:"timeout" yaml:"timeout"`               // of one operation on one lane
	Seed      uint64        `json:"seed" yaml:"seed"`                     // of the order of targets in each round; 0: taken from the clock and recorded
	Limits    target.Limits `json:"limits" yaml:"limits"`
}
