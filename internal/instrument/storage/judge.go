package storage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/record"
)

// host is the name of the target nearest to the device, the reference for the others.
const host = "host"

// Judge evaluates the record of a storage run, even if incomplete, or imported results.
func Judge(rec *record.Record) (*Judgement, error) {
	rec = onceCells(finding.Once(rec))
	j := &Judgement{Record: rec, Targets: slices.Clone(rec.Targets)}
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

// onceCells removes duplicate cells, as [finding.Once] does. Imported cells with the same
// round number are different runs unless they have the same source. They get new round
// numbers in the order in which they were found.
func onceCells(rec *record.Record) *record.Record {
	type key struct {
		target, volume, cache, job, tool string
		round                            int
		source                           string
	}
	out := *rec
	out.Cells = nil
	seen, next := map[key]bool{}, map[key]int{}
	for _, c := range rec.Cells {
		k := key{target: c.Target, volume: c.Volume, cache: c.Cache, job: c.Job, tool: c.Tool}
		p := k
		if p.round, p.source = c.Round, c.Source; seen[p] {
			out.ProblemCount++
			out.Problems = append(out.Problems[:len(out.Problems):len(out.Problems)], record.Problem{Reason: "duplicate cell of " + c.Target + " " + c.Job})
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

// nameTargets adds targets that occur only in cells: imported results may have no more
// than a name.
func (j *Judgement) nameTargets() {
	for _, c := range j.Record.Cells {
		if !slices.ContainsFunc(j.Targets, func(t record.Target) bool { return t.Name == c.Target }) {
			j.Targets = append(j.Targets, record.Target{Type: record.TypeTarget, Name: c.Target})
		}
	}
}

// bestCeilings keeps the best ceiling of each device.
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

// weigh sorts the cells into tables, by volume in the order of the run.
func (j *Judgement) weigh() {
	for i := range j.Record.Cells {
		c := &j.Record.Cells[i]
		if c.Failure != nil && c.Failure.Kind == record.FailInterrupted {
			continue // an interruption is not a failure of the target
		}
		t := j.tableOf(c)
		j.Total++
		if !j.cell(t, c.Target).take(c) {
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

// tableOf returns the table of a cell, and creates it if it does not exist.
func (j *Judgement) tableOf(c *record.Cell) *Table {
	for _, t := range j.Tables {
		if t.Job == c.Job && t.Tool == c.Tool && t.Volume == c.Volume && t.Cache == c.Cache {
			return t
		}
	}
	t := &Table{Job: c.Job, Tool: c.Tool, Volume: c.Volume, Cache: c.Cache, job: Job{Name: c.Job, Tool: c.Tool}}
	if i := j.jobRank(c.Job); i < len(j.Plan.Jobs) {
		t.job = j.Plan.Jobs[i]
	}
	t.RW, t.BS = t.job.RW, t.job.BS
	j.Tables = append(j.Tables, t)
	return t
}

// cell returns the cell of a target, and adds it to the table if it does not exist.
func (j *Judgement) cell(t *Table, target string) *Cell {
	if c := t.cellOf(target); c != nil {
		return c
	}
	c := &Cell{Target: target, judge: j, table: t, info: &j.Targets[j.rank(target)], place: j.placeOf(target, t.Volume)}
	t.Cells = append(t.Cells, c)
	return c
}

// cellOf returns the cell of a target, or nil.
func (t *Table) cellOf(target string) *Cell {
	for _, c := range t.Cells {
		if c.Target == target {
			return c
		}
	}
	return nil
}

// describe sets the block size and the directions from the results if the plan lacks them.
func (t *Table) describe() {
	var rounds []*record.Cell
	for _, c := range t.Cells {
		rounds = append(rounds, c.trials...)
	}
	for _, r := range rounds {
		for _, f := range flowsOf(r.Reported) {
			if t.BS == 0 && f.IOs > 0 {
				t.BS = f.Bytes / f.IOs
			}
		}
	}
	t.RW = cmp.Or(t.RW, map[[directionCount]bool]string{{true, true}: "rw", {true, false}: RWRead, {false, true}: RWWrite}[movedIn(rounds)])
}

// random reports whether the table's job has random access.
func (t *Table) random() bool { return strings.HasPrefix(t.RW, "rand") }

// inFlight returns the number of concurrent requests of the job, or 0 if unknown.
func (t *Table) inFlight() float64 {
	if t.job.RW == "" { // not in the plan, or defined by a job file
		return 0
	}
	return float64(max(t.job.NumJobs, 1)) * float64(max(t.job.IODepth, 1))
}

// absent adds cells for the targets on which the table's volume is unavailable.
func (j *Judgement) absent(t *Table) {
	for i := range j.Targets {
		name := j.Targets[i].Name
		if p := j.placeOf(name, t.Volume); p != nil && p.Absent != "" {
			j.cell(t, name).Absent = p.Absent
		}
	}
}

// rank returns the index of a target. All targets of cells are in Targets.
func (j *Judgement) rank(name string) int {
	return slices.IndexFunc(j.Targets, func(t record.Target) bool { return t.Name == name })
}

// placeOf returns the recorded place of a volume on a target, or nil.
func (j *Judgement) placeOf(target, volume string) *record.Place {
	for i := range j.Record.Places {
		if p := &j.Record.Places[i]; p.Target == target && p.Volume == volume {
			return p
		}
	}
	return nil
}

// planned returns the index of an item in the plan. Unplanned items come last.
func planned[T any](all []T, is func(T) bool) int {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return i
	}
	return len(all)
}

func (j *Judgement) jobRank(job string) int {
	return planned(j.Plan.Jobs, func(p Job) bool { return p.Name == job })
}

// volumeKind returns the kind of a volume: nfs for "nfs=server:/path".
func volumeKind(volume string) string {
	kind, _, _ := strings.Cut(volume, "=")
	return kind
}
