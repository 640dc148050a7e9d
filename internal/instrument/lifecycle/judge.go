// Package lifecycle is the first instrument. It measures how long create, start, stop,
// rm and run take on each target, one at a time or many at once. Pod operations are
// measured too.
// This package has the options, the judgement of a record, its figures and its page.
// They depend only on a record. Package run below it schedules the operations.
package lifecycle

import (
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Name is the instrument's verb, its key in a plan and its name in a record.
const Name = "lifecycle"

// Judgement holds the results of a lifecycle run.
type Judgement struct {
	Record   *record.Record
	Plan     Options
	Baseline string     // "" if there is only one target
	All      figure.Set // grouped by lanes, op and target; the first of each group is the time
	Found    []record.Finding
	Failed   int // operations, warm-up included
	Total    int
	Unproven int // operations whose outcome is unknown; not in Total
}

// Judge judges a record of a lifecycle run, finished or not.
func Judge(rec *record.Record) (*Judgement, error) {
	rec = finding.Once(rec)
	j := &Judgement{Record: rec}
	if err := instrument.ReadPlan(&rec.Header, Name, &j.Plan); err != nil {
		return nil, err
	}
	j.Baseline = instrument.Baseline(j.Plan.Baseline, rec.Targets)
	for _, lanes := range slices.DeleteFunc(slices.Clone(j.Plan.Lanes), func(n int) bool { return j.Rounds(n) == 0 }) {
		for _, op := range j.Plan.Ops {
			for i := range rec.Targets {
				if t := &rec.Targets[i]; Absent(t, op) == "" {
					j.All = append(j.All, figures(rec, t, op, lanes)...)
				}
			}
		}
	}
	for _, t := range j.tables() {
		j.Plan.Compare(j.Baseline, pairs(t.Set, j.Baseline))
	}
	for i := range rec.Batches {
		failed, total := Outcomes(&rec.Batches[i])
		if rec.Batches[i].Unproven {
			j.Unproven += total
			continue
		}
		j.Failed, j.Total = j.Failed+failed, j.Total+total
	}
	j.Found = j.findings()
	return j, nil
}

// Outcomes returns the numbers of failed and of all operations in a batch. Interrupted
// operations count as neither, because the target is not at fault.
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

// imported returns the sources of the batches, or nil if any was measured.
func (j *Judgement) imported() (sources []string) {
	for i := range j.Record.Batches {
		if j.Record.Batches[i].Source == "" {
			return nil
		}
		sources = append(sources, j.Record.Batches[i].Source)
	}
	return sources
}

// table holds the figures at one number of lanes.
type table struct {
	figure.Set
	lanes, rounds int
}

func (j *Judgement) tables() (all []table) {
	for _, t := range j.All.Parts("lanes") {
		lanes, _ := strconv.Atoi(t.Get("lanes"))
		all = append(all, table{t, lanes, j.Rounds(lanes)})
	}
	return all
}

// Rounds returns the number of measured rounds started at a number of lanes.
func (j *Judgement) Rounds(lanes int) (n int) {
	for i := range j.Record.Batches {
		if b := &j.Record.Batches[i]; b.Lanes == lanes && b.Phase == record.PhaseMeasure {
			n = max(n, b.Round+1)
		}
	}
	return n
}

// times returns the first figure of each operation and target.
func (t *table) times() (all []*figure.Figure) {
	for _, cell := range t.Parts("op", "target") {
		all = append(all, &cell[0])
	}
	return all
}

// Absent returns why a target lacks an operation, or "" if it has it.
func Absent(t *record.Target, op setting.Op) string {
	def, ok := t.Operations[string(op)]
	if !ok {
		return "the target has no such operation"
	}
	return def.Absent
}

// Comparisons returns the number of comparisons in a table of these targets.
func (o *Options) Comparisons(targets []record.Target) (n int) {
	base := slices.IndexFunc(targets, func(t record.Target) bool { return t.Name == instrument.Baseline(o.Baseline, targets) })
	for _, op := range o.Ops {
		for i := range targets {
			if base >= 0 && i != base && Absent(&targets[i], op) == "" && Absent(&targets[base], op) == "" {
				n++
			}
		}
	}
	return n
}

// pairs returns each time of a table with the same operation's time on the baseline.
func pairs(t figure.Set, with string) (all []figure.Pair) {
	for _, row := range t.Parts("op") {
		base := row.Part("target", with)
		for _, cell := range row.Parts("target") {
			was, is := &base[0], &cell[0]
			if a, b := returned(base), returned(cell); byFirst(was) != byFirst(is) && a.Known() && b.Known() { // one has no first instruction
				was, is = a, b
			}
			if cell.Get("target") != with && was.N > 0 && is.N > 0 && was.Quantity == is.Quantity {
				all = append(all, figure.Pair{Base: was, Figure: is})
			}
		}
	}
	return all
}

// byFirst reports whether a time ends at the workload's first instruction.
func byFirst(f *figure.Figure) bool { return f.Until == string(record.StampFirst) }

// returned is the time until the call returned.
func returned(cell figure.Set) *figure.Figure {
	return cell.Of("time-to", "stamp", string(record.StampReturned))
}

// compared returns the time that was compared with the baseline. If the two end at
// different stamps, it is the time until the call returned.
func compared(cell figure.Set) *figure.Figure {
	if r := returned(cell); cell[0].Versus == nil && r.Versus != nil {
		return r
	}
	return &cell[0]
}

// Result returns the numbers of failed and of all operations, warm-up included, and the
// findings.
func (j *Judgement) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Found
}

// Figures returns all figures of the run.
func (j *Judgement) Figures() []figure.Figure { return slices.Clone(j.All) }
