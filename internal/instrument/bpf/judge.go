package bpf

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/record"
)

// Name of the instrument: its verb, its key in a plan, its word in a record.
const Name = "bpf"

// Judge judges a record of what BPF programs cost, finished or not.
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

// judging weighs one record.
type judging struct {
	rec      *record.Record // with every phase of a point once
	b        *Judgement
	asked    []record.Asked // what is told apart, in the order of the plan
	measured map[record.Asked][]*measured
}

// measured is one point of one round: its phases, of which those that were not
// reached are nil.
type measured struct {
	round      int
	statistics bool
	idle       *record.Point
	load       *record.Point
	cool       *record.Point
}

// apart is what points are told apart by: not whether statistics were on, which
// pairs them, nor the address and the seconds, which may be a phase's own.
func apart(a record.Asked) record.Asked {
	a.Statistics, a.URL, a.Seconds = false, "", 0
	return a
}

// asks is what a point asks for, without what it cannot: services are those of tare's
// own programs.
func (j *judging) asks(p *record.Point) record.Asked {
	a := apart(p.Asked)
	if j.b.Plan.Datapath == "" {
		a.Services = 0
	}
	return a
}

// group puts the phases of a point together. Of a phase that is there twice the first
// counts, and the record is said to be damaged.
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
				continue // no fault of the point
			}
			j.b.Total++
			if m.failure() != nil {
				j.b.Failed++
			}
		}
	}
}

// planned compares values by where they stand in the plan. Those that do not stand in it
// are behind all others: their place, -1, is the largest without a sign.
func planned[T cmp.Ordered](plan []T, a, b T) int {
	return cmp.Or(cmp.Compare(uint(slices.Index(plan, a)), uint(slices.Index(plan, b))), cmp.Compare(a, b))
}

// measuredOf is the point that a phase belongs to. The node is looked at idle and
// cooling with statistics only.
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

// sameLoad tells whether two lines can be one load, written twice. A failure beside
// a load that went well is that of another one, and so is one at another time:
// statistics are not known of all that failed.
func sameLoad(a, b *record.Point) bool {
	return (a.Failure == nil) == (b.Failure == nil) && (a.Failure == nil || a.Begun == b.Begun)
}

// failure is why the point gives no figures. After the load nothing can take them
// away.
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

// loaded is the point's load, nil where it gives no figures.
func (m *measured) loaded() *record.Point {
	if m.load == nil || m.load.Failure != nil || m.idle != nil && m.idle.Failure != nil || m.load.Ended <= m.load.Begun {
		return nil
	}
	return m.load
}

// programs are those of the record, each once: a data path that is loaded anew at
// each point has other ids every time, of which those of one point are taken, and
// of others what is called otherwise.
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

// memory is that of all programs and of each map once, used or not.
func (j *judging) memory() {
	at, users := map[uint32]int{}, map[uint32]int{} // places in Maps, and programs that use it, by a map's id
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
		add(mapRow{a.Map, cmp.Or(cleanList(slices.Concat(a.Holders, a.Pins)), "nobody that is seen")})
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

// plus adds amounts up, of which one that is not known (-1) makes the sum so.
func plus(sum, v int64) int64 {
	if sum < 0 || v < 0 || sum > math.MaxInt64-v {
		return -1
	}
	return sum + v
}
