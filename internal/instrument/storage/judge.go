package storage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/record"
)

// host is the target that is nearest to the device: the figures of the others are
// held against its own.
const host = "host"

// Judge judges a record of a storage run, finished or not, or of what was
// imported from tools' output.
func Judge(rec *record.Record) (*Judgement, error) {
	rec = onceCells(finding.Once(rec))
	j := &Judgement{Record: rec, Targets: slices.Clone(rec.Targets), Places: rec.Places}
	if err := instrument.ReadPlan(&rec.Header, Name, &j.Plan); err != nil {
		return nil, err
	}
	j.nameTargets()
	j.Imported = len(rec.Cells) > 0 && !slices.ContainsFunc(rec.Cells, func(c record.Cell) bool { return c.Source == "" })
	j.bestCeilings()
	j.weigh()
	j.findBounds()
	for _, c := range j.cells() {
		c.judged()
	}
	j.Found = j.findings()
	return j, nil
}

// onceCells leaves out cells that are there twice, as [finding.Once] does. Two imported
// ones with one number are two runs, unless they were read from one place: they
// are numbered anew, in the order in which they were found.
func onceCells(rec *record.Record) *record.Record {
	type key struct{ target, volume, cache, job, tool string }
	type place struct {
		key
		round  int
		source string
	}
	out := *rec
	out.Cells = nil
	seen, next := map[place]bool{}, map[key]int{}
	for _, c := range rec.Cells {
		k := key{c.Target, c.Volume, c.Cache, c.Job, c.Tool}
		p := place{k, c.Round, c.Source}
		if seen[p] {
			out.ProblemCount++
			out.Problems = append(out.Problems[:len(out.Problems):len(out.Problems)], record.Problem{Reason: "a cell of " + c.Target + " " + c.Job + " is there twice"})
			continue
		}
		seen[p] = true
		if c.Source != "" {
			c.Round = next[k]
			next[k]++
		}
		out.Cells = append(out.Cells, c)
	}
	return &out
}

// nameTargets adds those that only cells name: what was imported may have no
// more than a name.
func (j *Judgement) nameTargets() {
	for _, c := range j.Record.Cells {
		if !slices.ContainsFunc(j.Targets, func(t record.Target) bool { return t.Name == c.Target }) {
			j.Targets = append(j.Targets, record.Target{Type: record.TypeTarget, Name: c.Target})
		}
	}
}

// bestCeilings keeps of each device the best that was measured.
func (j *Judgement) bestCeilings() {
	for _, c := range j.Record.Ceilings {
		if c.Failure != nil {
			continue
		}
		i := slices.IndexFunc(j.Ceilings, func(b record.Ceiling) bool { return b.Volume == c.Volume && b.Device == c.Device })
		if i < 0 {
			j.Ceilings = append(j.Ceilings, c)
			continue
		}
		b := &j.Ceilings[i]
		b.When = "best"
		for _, x := range ceilingColumns {
			*x.of(b) = max(*x.of(b), *x.of(&c))
		}
	}
}

// weigh sorts the cells into tables, volume by volume as they were run.
func (j *Judgement) weigh() {
	for i := range j.Record.Cells {
		c := &j.Record.Cells[i]
		if c.Failure != nil && c.Failure.Kind == record.FailInterrupted {
			continue // being told to stop is no fault of the target
		}
		t := j.tableOf(c)
		w := t.cellOf(c.Target)
		if w == nil {
			w = j.cell(t, c.Target)
		}
		j.Total++
		if !w.take(c) {
			j.Failed++
		}
	}
	for _, t := range j.Tables {
		j.absent(t)
		slices.SortStableFunc(t.Cells, func(a, b *Cell) int { return j.rank(a.Target) - j.rank(b.Target) })
		t.describe()
		for _, c := range t.Cells {
			c.sum()
		}
	}
	j.compare()
	volume := func(t *Table) int {
		return planned(j.Plan.Volumes, func(v string) bool { return v == t.Volume || volumeKind(v) == t.Volume })
	}
	cache := func(t *Table) int { return planned(j.Plan.Cache, func(c string) bool { return c == t.Cache }) }
	slices.SortStableFunc(j.Tables, func(a, b *Table) int {
		return cmp.Or(volume(a)-volume(b), j.jobRank(a.Job)-j.jobRank(b.Job), cache(a)-cache(b))
	})
}

// tableOf is the cell's table, a new one where there is none yet.
func (j *Judgement) tableOf(c *record.Cell) *Table {
	for _, t := range j.Tables {
		if t.Job == c.Job && t.Tool == c.Tool && t.Volume == c.Volume && t.Cache == c.Cache {
			if t.Command == "" {
				t.Command = c.Command
			}
			return t
		}
	}
	t := &Table{Job: c.Job, Tool: c.Tool, Volume: c.Volume, Cache: c.Cache, Command: c.Command, job: Job{Name: c.Job, Tool: c.Tool}}
	if i := j.jobRank(c.Job); i < len(j.Plan.Jobs) {
		t.job = j.Plan.Jobs[i]
	}
	t.RW, t.BS = t.job.RW, t.job.BS
	j.Tables = append(j.Tables, t)
	return t
}

// cell appends a target's cell to a table.
func (j *Judgement) cell(t *Table, target string) *Cell {
	c := &Cell{Target: target, judge: j, table: t, info: &j.Targets[j.rank(target)], place: j.placeOf(target, t.Volume)}
	t.Cells = append(t.Cells, c)
	return c
}

// cellOf is a target's cell, nil where the table has none.
func (t *Table) cellOf(target string) *Cell {
	for _, c := range t.Cells {
		if c.Target == target {
			return c
		}
	}
	return nil
}

// describe finds what the plan does not say by what was moved: the block size and the
// directions.
func (t *Table) describe() {
	var moved [directionCount]bool
	for _, c := range t.Cells {
		for _, trial := range c.trials {
			for d, f := range flowsOf(trial.Reported) {
				moved[d] = moved[d] || moves(f)
				if t.BS == 0 && f.IOs > 0 {
					t.BS = f.Bytes / f.IOs
				}
			}
		}
	}
	if t.RW == "" {
		t.RW = map[[directionCount]bool]string{{true, true}: "rw", {true, false}: RWRead, {false, true}: RWWrite}[moved]
	}
}

// random says whether the table's job jumps about.
func (t *Table) random() bool { return strings.HasPrefix(t.RW, "rand") }

// inFlight is how many requests the job has open at a time, 0 where that is not
// known.
func (t *Table) inFlight() float64 {
	if t.job.RW == "" { // it is not in the plan, or one of a job file
		return 0
	}
	return float64(max(t.job.NumJobs, 1)) * float64(max(t.job.IODepth, 1))
}

// absent adds the targets that cannot have the table's volume.
func (j *Judgement) absent(t *Table) {
	for i := range j.Targets {
		name := j.Targets[i].Name
		p := j.placeOf(name, t.Volume)
		if p == nil || p.Absent == "" {
			continue
		}
		if c := t.cellOf(name); c != nil {
			c.Absent = p.Absent
			continue
		}
		j.cell(t, name).Absent = p.Absent
	}
}

// rank is a target's place in Targets, which have all that cells name.
func (j *Judgement) rank(name string) int {
	return slices.IndexFunc(j.Targets, func(t record.Target) bool { return t.Name == name })
}

// placeOf is what a volume is on a target, nil where that was not recorded.
func (j *Judgement) placeOf(target, volume string) *record.Place {
	for i := range j.Places {
		if p := &j.Places[i]; p.Target == target && p.Volume == volume {
			return p
		}
	}
	return nil
}

// planned is where something stands in the plan. What that does not name comes after
// what it does.
func planned[T any](all []T, is func(T) bool) int {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return i
	}
	return len(all)
}

func (j *Judgement) jobRank(job string) int {
	return planned(j.Plan.Jobs, func(p Job) bool { return p.Name == job })
}

// volumeKind is that of "nfs=server:/path": nfs.
func volumeKind(volume string) string {
	kind, _, _ := strings.Cut(volume, "=")
	return kind
}
