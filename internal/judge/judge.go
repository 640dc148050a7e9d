// Package judge turns a record into what can be said of it: a summary for
// every operation of every target, comparisons with the baseline, and
// findings. It reads records and nothing else, so the same judgement is made
// while a run is under way (has the wanted precision been reached?), at its
// end, and years later from the stored file.
package judge

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Confidence of every interval.
const Confidence = 0.95

// Lifecycle is the judgement of a lifecycle run.
type Lifecycle struct {
	Plan     plan.Lifecycle   `json:"plan"`
	Baseline string           `json:"baseline"` // "" when there is one target only
	Targets  []record.Target  `json:"targets"`
	Tables   []Table          `json:"tables"` // one for each number of lanes
	Findings []record.Finding `json:"findings"`
	Failed   int              `json:"failed"` // operations, warm-up included
	Total    int              `json:"total"`
}

// Table holds everything at one number of lanes.
type Table struct {
	Lanes  int   `json:"lanes"`
	Rounds int   `json:"rounds"` // measured ones that were begun
	Rows   []Row `json:"rows"`   // of the operations that were asked for and that some target has
}

// Row is one operation across the targets, in the order of Targets.
type Row struct {
	Op    subject.Op `json:"op"`
	Cells []Cell     `json:"cells"`
}

// Cell is one operation on one target. Values are nanoseconds: with one lane
// the operation's latency, with more the makespan of the batch, one value for
// each round that had no failure.
type Cell struct {
	Target string `json:"target"`
	Absent string `json:"absent,omitempty"` // why the target has no such operation

	Failed int `json:"failed"` // of Total that were released, in measured rounds
	Total  int `json:"total"`
	Lost   int `json:"lost"` // lanes that did not come so far

	Summary Interval    `json:"summary"`
	Trimmed *float64    `json:"trimmed,omitempty"` // mean without the largest and the smallest; from 3 rounds on
	Versus  *Versus     `json:"versus,omitempty"`  // against the baseline
	Moments []Moment    `json:"moments,omitempty"` // each stamp of the operation
	Batch   *BatchFacts `json:"batch,omitempty"`   // with more lanes than one

	UserCPU float64 `json:"user_cpu"` // median of an operation's own command and the children it waited for; 0 where there is none
	SysCPU  float64 `json:"sys_cpu"`
	MaxRSS  float64 `json:"max_rss"` // bytes, median

	Roles []RoleFacts `json:"roles,omitempty"` // of targets that have processes of their own

	values stat.Rounds
}

// Interval is a median and its interval.
type Interval struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	Lo     float64 `json:"lo"` // of the interval, when Known
	Hi     float64 `json:"hi"`
	Known  bool    `json:"known"` // false: too few values for an interval at 95 %
}

// Versus is a comparison with the baseline.
type Versus struct {
	Baseline  string  `json:"baseline"`
	Delta     float64 `json:"delta"` // ratio of medians − 1
	P         float64 `json:"p"`
	PairedLo  float64 `json:"paired_lo"` // interval of the median ratio within a round, − 1
	PairedHi  float64 `json:"paired_hi"`
	Known     bool    `json:"known"` // the paired interval exists
	Different bool    `json:"different"`
	Why       string  `json:"why"`
}

// Moment is the time to one stamp of an operation.
type Moment struct {
	Stamp   record.Stamp `json:"stamp"`
	Summary Interval     `json:"summary"`
}

// BatchFacts say how the lanes of a batch fared.
type BatchFacts struct {
	Latencies   int     `json:"latencies"` // lanes in all rounds
	P50         float64 `json:"p50"`       // of a lane's latency, from its own start
	P90         float64 `json:"p90"`
	P99         float64 `json:"p99"`
	Max         float64 `json:"max"`
	Skew        float64 `json:"skew"`        // median over rounds: last lane's start − first lane's
	SkewMax     float64 `json:"skew_max"`    // the worst round's
	Parallelism float64 `json:"parallelism"` // median over rounds: Σ latency ÷ makespan
	OwnShare    float64 `json:"own_share"`   // tare's own CPU ÷ (makespan × CPUs), median
}

// Of judges a record of a lifecycle run, finished or not.
func Of(rec *record.Record) (*Lifecycle, error) {
	if rec.Header.Experiment != "lifecycle" {
		return nil, fmt.Errorf("this is a record of %q; this version of tare reports lifecycle records", rec.Header.Experiment)
	}
	rec = once(rec)
	l := &Lifecycle{Targets: rec.Targets}
	if err := json.Unmarshal(rec.Header.Plan, &l.Plan); err != nil {
		return nil, fmt.Errorf("the record's plan cannot be read: %w", err)
	}
	l.Baseline = Baseline(l.Plan.Baseline, rec.Targets)
	for _, n := range l.Plan.Lanes {
		if t := l.table(rec, n); t.Rounds > 0 {
			l.Tables = append(l.Tables, t)
		}
	}
	for i := range rec.Batches {
		for j := range rec.Batches[i].Samples {
			switch f := rec.Batches[i].Samples[j].Failure; {
			case f == nil:
				l.Total++
			case f.Kind != record.FailInterrupted: // being told to stop is no fault of the target
				l.Total++
				l.Failed++
			}
		}
	}
	l.Findings = findings(l, rec)
	return l, nil
}

// Baseline is the target that the others are compared with: the wanted one, or
// the first runtime, or else the first target.
func Baseline(wanted string, targets []record.Target) string {
	if len(targets) < 2 {
		return ""
	}
	for _, t := range targets {
		if t.Name == wanted {
			return wanted
		}
	}
	for _, t := range targets {
		if t.Kind != "host" && t.Kind != "floor" {
			return t.Name
		}
	}
	return targets[0].Name
}

func (l *Lifecycle) table(rec *record.Record, lanes int) Table {
	t := Table{Lanes: lanes}
	var batches []*record.Batch
	for i := range rec.Batches {
		if b := &rec.Batches[i]; b.Lanes == lanes && b.Phase == record.PhaseMeasure {
			batches = append(batches, b)
			t.Rounds = max(t.Rounds, b.Round+1)
		}
	}
	for _, op := range l.Plan.Ops {
		if !slices.ContainsFunc(l.Targets, func(t record.Target) bool { return Absent(&t, op) == "" }) {
			continue
		}
		row := Row{Op: op}
		for i := range l.Targets {
			row.Cells = append(row.Cells, cell(&l.Targets[i], op, lanes, batches, rec.Header.Environment.CPUs))
		}
		l.compare(&row)
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Absent says why a target has no such operation, "" where it has one.
func Absent(t *record.Target, op subject.Op) string {
	def, ok := t.Operations[string(op)]
	if !ok {
		return "the target has no such operation"
	}
	return def.Absent
}

func (l *Lifecycle) compare(row *Row) {
	base := slices.IndexFunc(row.Cells, func(c Cell) bool { return c.Target == l.Baseline })
	if base < 0 || len(row.Cells[base].values) == 0 {
		return
	}
	for i := range row.Cells {
		c := &row.Cells[i]
		if i == base || len(c.values) == 0 {
			continue
		}
		r := stat.Compare(row.Cells[base].values, c.values)
		if r.Delta != r.Delta { // NaN: nothing positive to compare with
			continue
		}
		v := &Versus{Baseline: l.Baseline, Delta: r.Delta, P: r.P, Different: r.Different, Why: r.Why}
		if r.PairedLo == r.PairedLo && r.PairedHi == r.PairedHi { // not NaN
			v.PairedLo, v.PairedHi, v.Known = r.PairedLo, r.PairedHi, true
		}
		c.Versus = v
	}
}

// Precision is the widest interval of the table, as a share of its median, and
// where it is. Infinite while an interval is not known. The targets that are
// named to be left out do not count, and neither does an operation that never
// succeeded, unless there is nothing else: more rounds would not help either.
func (t *Table) Precision(leftOut ...string) (worst float64, where string) {
	failed := ""
	for _, row := range t.Rows {
		for _, c := range row.Cells {
			if c.Absent != "" || c.Total == 0 || slices.Contains(leftOut, c.Target) {
				continue
			}
			if c.Summary.N == 0 {
				failed = c.Target + " " + string(row.Op)
				continue
			}
			s := c.Summary
			p := stat.Summary{N: s.N, Median: s.Median, Lo: s.Lo, Hi: s.Hi, Known: s.Known}.Precision()
			if p >= worst {
				worst, where = p, c.Target+" "+string(row.Op)
			}
		}
	}
	if where == "" && failed != "" {
		return math.Inf(1), failed
	}
	return worst, where
}
