// Package lifecycle is the first instrument: how long create, start, stop, rm and
// run take on each target, and the operations of pods, one at a time or many at
// once.
//
// Here are its options, its judgement of a record, its figures and its page; they
// need nothing but a record. Package run below it schedules.
package lifecycle

import (
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Judgement is what can be said of a lifecycle run.
type Judgement struct {
	Record   *record.Record
	Plan     Options
	Baseline string // "" when there is one target only
	Targets  []record.Target
	Tables   []Table // one for each number of lanes
	Found    []record.Finding
	Failed   int // operations, warm-up included
	Total    int
	Unproven int      // of which it cannot be known whether they failed; not among Total
	Imported []string // where all of it was imported from; nil: it was measured
}

// Table holds everything at one number of lanes.
type Table struct {
	Lanes  int
	Rounds int   // measured ones that were begun
	Rows   []Row // of the operations that were asked for and that some target has

	Comparisons int // with the baseline
}

// Row is one operation across the targets, in the order of Targets.
type Row struct {
	Op    setting.Op
	Cells []Cell
}

// Cell is one operation on one target.
type Cell struct {
	Target string
	Absent string // why the target has no such operation
	Lost   int    // lanes that did not come so far

	Done record.Stamp // that ends Time, see [headline]

	// Time is with one lane the operation's latency, with more the makespan of the
	// batch, one value for each round that had no failure.
	Time    figure.Figure
	Trimmed figure.Figure   // mean without the largest and the smallest; from 3 rounds on
	Moments []figure.Figure // the time to each stamp of the operation
	Lanes   []figure.Figure // how the lanes of a batch fared, see [laneColumns]; with more lanes than one
	Own     []figure.Figure // user and system CPU time and the memory of the operation's own command, each where there is any
	Ready   Ready           // of workloads that were asked from outside whether they are ready
	Roles   []Role          // of targets that have processes of their own
}

// Judge judges a record of a lifecycle run, finished or not.
func Judge(rec *record.Record) (*Judgement, error) {
	rec = finding.Once(rec)
	j := &Judgement{Record: rec, Targets: rec.Targets}
	if err := instrument.ReadPlan(&rec.Header, Name, &j.Plan); err != nil {
		return nil, err
	}
	j.Baseline = instrument.Baseline(j.Plan.Baseline, rec.Targets)
	for _, n := range j.Plan.Lanes {
		if t := j.table(rec, n); t.Rounds > 0 {
			j.Tables = append(j.Tables, t)
		}
	}
	for i := range rec.Batches {
		failed, total := Outcomes(&rec.Batches[i])
		if rec.Batches[i].Unproven {
			j.Unproven += total
			continue
		}
		j.Failed, j.Total = j.Failed+failed, j.Total+total
	}
	j.Imported = imported(rec)
	j.Found = j.findings(rec)
	return j, nil
}

// Outcomes are how many operations of a batch failed, of how many. Being told to stop
// is no fault of the target.
func Outcomes(b *record.Batch) (failed, total int) {
	if b.Summary != nil {
		return int(b.Summary.Failed), int(b.Summary.Count)
	}
	for i := range b.Samples {
		switch f := b.Samples[i].Failure; {
		case f == nil:
			total++
		case f.Kind != record.FailInterrupted:
			failed, total = failed+1, total+1
		}
	}
	return failed, total
}

// imported are where the batches of a record come from, nil if one was measured.
func imported(rec *record.Record) (sources []string) {
	for i := range rec.Batches {
		if rec.Batches[i].Source == "" {
			return nil
		}
		sources = append(sources, rec.Batches[i].Source)
	}
	return sources
}

// Name of the instrument: its verb, its key in a plan, its word in a record.
const Name = "lifecycle"

func (j *Judgement) table(rec *record.Record, lanes int) Table {
	t := Table{Lanes: lanes}
	var batches []*record.Batch
	for i := range rec.Batches {
		if b := &rec.Batches[i]; b.Lanes == lanes && b.Phase == record.PhaseMeasure {
			batches = append(batches, b)
			t.Rounds = max(t.Rounds, b.Round+1)
		}
	}
	for _, op := range j.Plan.Ops {
		if !some(j.Targets, op) {
			continue
		}
		row := Row{Op: op}
		for i := range j.Targets {
			row.Cells = append(row.Cells, cell(&j.Targets[i], op, lanes, batches, rec.Header.Environment.CPUs))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Comparisons = len(j.compare(&t, j.Baseline))
	return t
}

// Absent says why a target has no such operation, "" where it has one.
func Absent(t *record.Target, op setting.Op) string {
	def, ok := t.Operations[string(op)]
	if !ok {
		return "the target has no such operation"
	}
	return def.Absent
}

// Comparisons are how many a table of such targets has.
func (o *Options) Comparisons(targets []record.Target) (n int) {
	with := instrument.Baseline(o.Baseline, targets)
	for _, op := range o.Ops {
		for i := range targets {
			for k := range targets {
				if targets[k].Name == with && i != k && Absent(&targets[i], op) == "" && Absent(&targets[k], op) == "" {
					n++
				}
			}
		}
	}
	return n
}

// compare compares all cells of a table with those of one target.
func (j *Judgement) compare(t *Table, with string) []figure.Pair {
	all := pairs(t, with)
	j.Plan.Compare(with, all)
	return all
}

func pairs(t *Table, with string) (all []figure.Pair) {
	for _, row := range t.Rows {
		base := slices.IndexFunc(row.Cells, func(c Cell) bool { return c.Target == with })
		for i := range row.Cells {
			if base < 0 || i == base {
				continue
			}
			was, is := &row.Cells[base].Time, &row.Cells[i].Time
			if first := record.StampFirst; (row.Cells[base].Done == first) != (row.Cells[i].Done == first) { // one lacks it
				if a, b := row.Cells[base].returned(), row.Cells[i].returned(); a != nil && b != nil {
					was, is = a, b
				}
			}
			if was.N > 0 && is.N > 0 && was.Quantity == is.Quantity {
				all = append(all, figure.Pair{Base: was, Figure: is})
			}
		}
	}
	return all
}

// returned is the time until the call returned, nil if that is not known.
func (c *Cell) returned() *figure.Figure {
	i := slices.IndexFunc(c.Moments, func(f figure.Figure) bool { return f.Labels.Get("stamp") == string(record.StampReturned) })
	if i < 0 {
		return nil
	}
	return &c.Moments[i]
}

// compared is the time that was compared with the baseline: until the call returned if the
// baseline's ends with another stamp.
func (c *Cell) compared() *figure.Figure {
	if r := c.returned(); c.Time.Versus == nil && r != nil && r.Versus != nil {
		return r
	}
	return &c.Time
}

// Result is how many operations failed of how many, warm-up included, and what is
// to be mistrusted.
func (j *Judgement) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Found
}

// Figures are all of the run's.
func (j *Judgement) Figures() (all []figure.Figure) {
	for _, t := range j.Tables {
		for _, row := range t.Rows {
			for _, c := range row.Cells {
				if c.Absent != "" {
					continue
				}
				all = append(append(all, c.Time, c.Trimmed), c.Moments...)
				all = append(all, c.Ready.Figures...)
				all = append(append(all, c.Lanes...), c.Own...)
				for _, r := range c.Roles {
					all = append(all, r.Used...)
				}
				if c.Lost > 0 {
					f := about("lanes-lost", figure.Count, c.Time.Labels)
					f.Better, f.Estimate = figure.Less, figure.Exactly(float64(c.Lost))
					all = append(all, f)
				}
			}
		}
	}
	return all
}

// ImportedFindings begin the codes of what was found while others' results were read.
const ImportedFindings = "import-"

// findings are what is to be mistrusted.
func (j *Judgement) findings(rec *record.Record) []record.Finding {
	var out finding.List
	out.TakeOver(rec, ImportedFindings, finding.StartsThrottled)
	out.Whole(rec)
	failures(rec, out.Add)
	rows := 0
	for i := range j.Tables {
		rows += len(j.Tables[i].Rows) * len(j.Targets)
	}
	for i := range j.Tables {
		j.unsteady(&j.Tables[i], out.Add)
		if j.Imported == nil { // nobody can add rounds to what was kept
			fewRounds(&j.Tables[i], j.Plan.RoundsFor(j.Tables[i].Comparisons), out.Add)
		}
		for _, row := range j.Tables[i].Rows {
			for k := range row.Cells {
				cellFindings(&j.Tables[i], row, &row.Cells[k], j.Targets[k].Kind, rows, out.Add)
			}
		}
	}
	out.Node(rec)
	return out
}
