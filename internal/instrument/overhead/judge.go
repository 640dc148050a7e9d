package overhead

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// Name is the name of the instrument as a verb, as a key in plans and in records.
const Name = "overhead"

// Judge evaluates the record of an overhead run, even if it is incomplete.
func Judge(rec *record.Record) (*Judgement, error) {
	rec = finding.Once(rec)
	j := &Judgement{Record: rec, Targets: rec.Targets, visits: ledger.Visits(rec.Readings, rec.Series)}
	if err := instrument.ReadPlan(&rec.Header, Name, &j.Plan); err != nil {
		return nil, err
	}
	j.close()
	j.missed()
	j.tables()
	j.Plan.CompareRows(j.compared())
	j.ratios()
	j.around()
	j.scaling()
	j.classes()
	j.requests()
	j.check()
	j.findings()
	return j, nil
}

// compared returns the figures that are compared between targets.
func (j *Judgement) compared() (out figure.Rows) {
	with := instrument.Baseline("", j.Targets)
	out.At = slices.IndexFunc(j.Targets, func(t record.Target) bool { return t.Name == with })
	for i := range j.Targets {
		out.Names = append(out.Names, j.Targets[i].Name)
	}
	for t := range ledger.Each(j.Tables) {
		memory, cpu := figure.Row{Name: t.heading() + ": memory"}, figure.Row{Name: t.heading() + ": CPU"}
		for k := range j.Targets {
			var sum, used *figure.Figure // incomplete values are bounds and show no difference
			if c := t.of(j.Targets[k].Name); c != nil && c.Ledger.Complete {
				sum = c.All.Of("memory")
				if cpu := c.All.Of("cpu"); cpu.Reasons == nil {
					used = cpu
				}
			}
			memory.Of, cpu.Of = append(memory.Of, sum), append(cpu.Of, used)
		}
		out.Rows = append(out.Rows, memory, cpu)
	}
	return out
}

func stepOf(p *ledger.Phase) Step { return Step{p.Name, p.Sandboxes} }

// close computes the ledger of every phase that ended.
func (j *Judgement) close() {
	for _, v := range j.visits {
		for i := range v.Phases {
			p := &v.Phases[i]
			if p.End == nil || p.End.Failure != nil && p.End.Failure.Kind == record.FailInterrupted {
				continue // interrupted, not a failure of the target
			}
			if p.Failure = p.End.Failure; p.Begin != nil {
				p.Failure = cmp.Or(p.Failure, p.Begin.Failure, ledger.Failed(p.Begin, p.End))
			}
			if p.Failure == nil {
				var err error
				if p.Ledger, err = v.Close(i, j.Record.Header.Environment.CPUs); err != nil {
					p.Failure = &record.Failure{Kind: record.FailState, Detail: err.Error()}
				}
			}
			if j.Total++; p.Failure != nil {
				j.Failed++
			}
			j.phases = append(j.phases, p)
		}
	}
}

// missed counts the phases of targets that were given up before their first phase.
func (j *Judgement) missed() {
	for t := range ledger.Each(j.Targets) {
		if slices.ContainsFunc(j.Record.Findings, func(f record.Finding) bool { return f.Target == t.Name && gone(&f) }) &&
			!slices.ContainsFunc(j.phases, func(p *ledger.Phase) bool { return p.Visit.Target == t.Name }) {
			n := len(j.planned())
			j.Failed, j.Total = j.Failed+n, j.Total+n
		}
	}
}

// booked returns the phases of a target that have a ledger.
func (j *Judgement) booked(target string) []*ledger.Phase {
	return slices.DeleteFunc(slices.Clone(j.phases), func(p *ledger.Phase) bool { return p.Visit.Target != target || p.Failure != nil })
}

// planned returns the planned steps of each target in order of the run. All phases run
// with the smallest number of sandboxes, and idle with each larger number.
func (j *Judgement) planned() []Step {
	var out []Step
	for i, n := range j.Plan.Sandboxes {
		for _, name := range withIdle(j.Plan.Phases) {
			if i == 0 || kindOf(name) == PhaseIdle {
				out = append(out, Step{name, n})
			}
		}
	}
	return out
}

// steps returns the planned steps, then other steps in the record.
func (j *Judgement) steps() []Step {
	out := j.planned()
	for _, c := range j.phases {
		if s := stepOf(c); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// kindOf returns the kind of a phase, or "" if the name is invalid.
func kindOf(name string) PhaseKind {
	p, _ := ParsePhase(name)
	return p.Kind
}

func (j *Judgement) tables() {
	for _, s := range j.steps() {
		t := Table{Step: s}
		for _, c := range j.phases {
			if w := c.End.Work; t.Command == "" && stepOf(c) == s && w != nil {
				t.Command = w.Command
			}
		}
		for i := range j.Targets {
			if c := j.cell(&t, j.Targets[i].Name); c.Rounds+c.Failed > 0 {
				t.Cells = append(t.Cells, c)
			}
		}
		if len(t.Cells) > 0 {
			j.Tables = append(j.Tables, t)
		}
	}
}

// cells iterates over all cells with their tables.
func (j *Judgement) cells() iter.Seq2[*Table, *Cell] {
	return func(yield func(*Table, *Cell) bool) {
		for t := range ledger.Each(j.Tables) {
			for c := range ledger.Each(t.Cells) {
				if !yield(t, c) {
					return
				}
			}
		}
	}
}

// at returns the cell of a target in a step, or nil if it has no figures.
func (j *Judgement) at(target string, s Step) *Cell {
	for _, c := range j.cells() {
		if c.Target == target && c.Step == s && c.Rounds > 0 {
			return c
		}
	}
	return nil
}

// figures returns the figures of all cells.
func (t *Table) figures() (all figure.Set) {
	for c := range ledger.Each(t.Cells) {
		all = append(all, c.All...)
	}
	return all
}

// of returns the cell of a target, or nil if it has no results.
func (t *Table) of(target string) *Cell {
	return ledger.Find(t.Cells, func(c *Cell) bool { return c.Target == target })
}
