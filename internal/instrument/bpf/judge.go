package bpf

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/record"
)

// Name is the instrument's verb, its key in a plan and its name in a record.
const Name = "bpf"

// Judge judges a record of the cost of BPF programs, complete or not.
func Judge(rec *record.Record) (*Judgement, error) {
	j := &judging{rec: rec, b: &Judgement{Record: rec, CPUs: rec.Header.Environment.CPUs}}
	if err := instrument.ReadPlan(&rec.Header, Name, &j.b.Plan); err != nil {
		return nil, err
	}
	j.group()
	j.programs()
	j.rows()
	switch j.b.Plan.Case {
	case record.CaseQuota:
		j.b.Quota = j.quota()
	case record.CaseMemory:
		j.b.Growth = j.growth()
	}
	j.b.Found = j.findings()
	return j.b, nil
}

// judging is the state of Judge.
type judging struct {
	rec      *record.Record // without duplicate phases
	b        *Judgement
	asked    []record.Asked // distinct points, in plan order
	measured map[record.Asked][]*measured
}

// measured is one point of one round. Phases that were not reached are nil.
type measured struct {
	round      int
	statistics bool
	idle       *record.Point
	load       *record.Point
	cool       *record.Point
}

// asks returns the identity of a point. It lacks the fields that may differ within a point:
// with and without statistics, the address and the seconds. Only tare's own programs have
// services.
func (j *judging) asks(p *record.Point) record.Asked {
	a := p.Asked
	a.Statistics, a.URL, a.Seconds = false, "", 0
	if j.b.Plan.Datapath == "" {
		a.Services = 0
	}
	return a
}

// group merges the phases of each point. A duplicate phase is ignored and the record
// is reported as damaged.
func (j *judging) group() {
	rec := *j.rec
	j.rec, j.measured = &rec, map[record.Asked][]*measured{}
	for i := range rec.Points {
		p := &rec.Points[i]
		if p.Source != "" {
			j.b.Imported = append(j.b.Imported, p.Source)
		}
		j.b.CPUs = max(j.b.CPUs, p.CPUs)
		at := j.measuredOf(p)
		phase := map[string]**record.Point{record.PhaseIdle: &at.idle, record.PhaseLoad: &at.load, record.PhaseCool: &at.cool}[p.Phase]
		switch {
		case phase == nil:
		case *phase != nil:
			rec.ProblemCount++
			rec.Problems = append(slices.Clip(rec.Problems), record.Problem{Reason: fmt.Sprintf("the %s phase of a point of round %d is there twice", p.Phase, p.Round+1)})
		default:
			*phase = p
		}
	}
	plan := &j.b.Plan
	slices.SortStableFunc(j.asked, func(a, b record.Asked) int {
		return cmp.Or(planned(plan.Connections, a.Connections, b.Connections), planned(plan.Heavy, a.Heavy, b.Heavy),
			planned(plan.Services, a.Services, b.Services), cmp.Compare(b.CPUs, a.CPUs)) // the control without a limit last
	})
	for _, a := range j.asked {
		slices.SortStableFunc(j.measured[a], func(a, b *measured) int { return cmp.Compare(a.round, b.round) })
		for _, m := range j.measured[a] {
			if m.interrupted() {
				continue // interrupted points are not failures
			}
			j.b.Total++
			if m.failure() != nil {
				j.b.Failed++
			}
		}
	}
}

// planned compares values by their position in the plan. Values outside the plan come
// last: their position, -1, is the largest unsigned number.
func planned[T cmp.Ordered](plan []T, a, b T) int {
	return cmp.Or(cmp.Compare(uint(slices.Index(plan, a)), uint(slices.Index(plan, b))), cmp.Compare(a, b))
}

// measuredOf returns the point of a phase. Idle and cooling phases belong to the point
// with statistics.
func (j *judging) measuredOf(p *record.Point) *measured {
	key := j.asks(p)
	all, known := j.measured[key]
	if !known {
		j.asked = append(j.asked, key)
	}
	statistics := p.Asked.Statistics || p.Phase != record.PhaseLoad
	for _, m := range all {
		if m.round == p.Round && m.statistics == statistics && (p.Phase != record.PhaseLoad || m.load == nil || sameLoad(m.load, p)) {
			return m
		}
	}
	m := &measured{round: p.Round, statistics: statistics}
	j.measured[key] = append(all, m)
	return m
}

// sameLoad reports whether two lines may describe the same load. A failure and a
// success are different loads, as are failures at different times. Some failures do not
// record whether statistics were on.
func sameLoad(a, b *record.Point) bool {
	return (a.Failure == nil) == (b.Failure == nil) && (a.Failure == nil || a.Begun == b.Begun)
}

// failure returns why the point has no figures. Failures after the load do not count.
func (m *measured) failure() *record.Failure {
	for _, p := range []*record.Point{m.idle, m.load} {
		if p != nil && p.Failure != nil && p.Failure.Kind != record.FailInterrupted {
			return p.Failure
		}
	}
	return nil
}

func (m *measured) interrupted() bool {
	return m.failure() == nil && (m.idle != nil && m.idle.Failure != nil || m.load != nil && m.load.Failure != nil)
}

// loaded returns the point's load, or nil if it has no figures.
func (m *measured) loaded() *record.Point {
	if m.load == nil || m.load.Failure != nil || m.idle != nil && m.idle.Failure != nil || m.load.Ended <= m.load.Begun {
		return nil
	}
	return m.load
}

// programs sets the record's programs, each once. A data path that is reloaded at each
// point gets new ids every time. programs therefore takes the ids of the point with
// most programs. From other points it adds only programs with new names.
func (j *judging) programs() {
	var most []record.ProgramRun
	for i := range j.rec.Points {
		if runs := j.rec.Points[i].Runs; len(runs) > len(most) {
			most = runs
		}
	}
	together := map[uint32]bool{}
	for _, r := range most {
		together[r.ID] = true
	}
	type name struct{ kind, name string }
	kept, names := map[uint32]bool{}, map[name]bool{}
	for _, p := range j.rec.Programs {
		if together[p.ID] {
			names[name{p.Kind, p.Name}] = true
		}
	}
	for _, p := range j.rec.Programs {
		if kept[p.ID] || !together[p.ID] && most != nil && names[name{p.Kind, p.Name}] {
			continue
		}
		kept[p.ID], names[name{p.Kind, p.Name}] = true, true
		j.b.Programs = append(j.b.Programs, p)
	}
	j.memory()
}

// memory sets the memory of all programs and of each map. Each map counts once, whether
// or not a program uses it.
func (j *judging) memory() {
	at, users := map[uint32]int{}, map[uint32]int{} // by map id: index in Maps, number of programs that use it
	add := func(m mapRow) {
		if _, known := at[m.ID]; !known {
			at[m.ID] = len(j.b.Maps)
			j.b.Maps = append(j.b.Maps, m)
		}
	}
	for i := range j.b.Programs {
		p := &j.b.Programs[i]
		j.b.Memory = plus(j.b.Memory, p.Memory)
		for _, m := range p.Maps {
			add(mapRow{ProgramMap: m})
			users[m.ID]++
			row := &j.b.Maps[at[m.ID]]
			row.Shared = max(row.Shared, users[m.ID])
		}
	}
	for i := range j.rec.Maps {
		a := &j.rec.Maps[i]
		add(mapRow{a.Map, cmp.Or(cleanList(slices.Concat(a.Holders, a.Pins)), "unknown holder")})
	}
	for i := range j.b.Maps {
		m := &j.b.Maps[i]
		j.b.Memory = plus(plus(j.b.Memory, m.Memory), m.InnerMemory)
		if m.Shared > 1 && m.keeper == "" {
			j.b.Shared++
		}
	}
	if len(j.b.Programs) == 0 {
		j.b.Memory = -1
	}
}

// plus adds two amounts; the sum is unknown (-1) if either is.
func plus(sum, v int64) int64 {
	if sum < 0 || v < 0 || sum > math.MaxInt64-v {
		return -1
	}
	return sum + v
}
