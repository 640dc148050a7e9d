package density

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// Name of the instrument: its verb, its key in a plan, its word in a record.
const Name = "density"

// PhaseIdle is that of readings in which the sandboxes of a step are watched.
const PhaseIdle = "idle"

// Judgement is what can be said of how many sandboxes a node holds.
type Judgement struct {
	Record   *record.Record
	Plan     Options
	Until    Until
	Targets  []Target
	Findings []record.Finding
	Failed   int // starts, where a failure is not what was asked for
	Total    int
}

// Target is how far one target went.
type Target struct {
	Info     record.Target
	Trial    *record.Density   // nil: there was none
	Ends     []*record.Density // one a round
	Count    figure.Figure     // sandboxes that were there at once
	Steps    []Step
	Visited  int             // rounds that have steps
	Segments []Segment       // between bends; one where there is none
	Recovery []figure.Figure // removal, memory
	Left     []figure.Figure // cgroups, processes, mounts
}

// Step is what was seen with so many sandboxes.
type Step struct {
	Sandboxes int           // as planned; of the last its median
	Last      bool          // it ended in its midst, in each round with as many as there were then
	Start     figure.Figure // its verdict is at most where most starts are known as the latest that can be
	Times     figure.Figure // how many times as long a start takes as in the first step of its round
	Memory    figure.Figure // the node's own change by sandbox, others' taken off
	Roles     []figure.Figure
	CPU       figure.Figure
	// Of starts until the workload was ready: how exactly that is known at worst, ns, and how
	// many were ready when they were asked first, so that their times are the latest that can be.
	Resolution    float64
	AtMost, Asked int
	starts        map[int][]float64 // by round, ns
}

// Segment is a stretch of counts over which one more sandbox costs the same.
type Segment struct {
	From, To int
	Slope    figure.Figure
}

// Result is how many starts failed of how many, and what is to be mistrusted.
func (j *Judgement) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Findings
}

// Judge judges a record of a density run, finished or not.
func Judge(rec *record.Record) (*Judgement, error) {
	rec = finding.Once(rec)
	j := &Judgement{Record: rec}
	if err := instrument.ReadPlan(&rec.Header, Name, &j.Plan); err != nil {
		return nil, err
	}
	var err error
	if j.Until, err = ParseUntil(j.Plan.Until); err != nil {
		return nil, err
	}
	visits := ledger.Visits(rec.Readings, nil)
	for i := range rec.Targets {
		t := Target{Info: rec.Targets[i]}
		j.ends(&t)
		j.steps(&t, visits)
		j.leavings(&t, visits)
		j.Targets = append(j.Targets, t)
	}
	j.find()
	return j, nil
}

func newFigure(quantity string, unit figure.Unit, better figure.Direction, labels figure.Labels, values stat.Rounds) figure.Figure {
	return figure.Figure{Experiment: Name, Quantity: quantity, Unit: unit, Better: better, Labels: labels, Estimate: figure.Median(values), Rounds: figure.ByRound(values)}
}

// ends are how far the visits of a target went, and how the machine came back.
func (j *Judgement) ends(t *Target) {
	count, removal, memory := stat.Rounds{}, stat.Rounds{}, stat.Rounds{}
	notBack := 0
	seen := map[int]bool{}
	for i := range j.Record.Density {
		d := &j.Record.Density[i]
		switch {
		case d.Target != t.Info.Name:
		case d.Trial:
			t.Trial = d
		case seen[d.Round] || d.Why == record.EndInterrupted: // which is no end of the target's
		default:
			seen[d.Round] = true
			t.Ends = append(t.Ends, d)
			count[d.Round] = float64(d.Sandboxes)
			if d.Removed > 0 {
				removal[d.Round] = float64(d.Removed)
			}
			if d.Back > 0 {
				memory[d.Round] = float64(d.Back)
			} else if d.Back < 0 {
				notBack++
			}
		}
	}
	labels := figure.Of("target", t.Info.Name)
	t.Count = newFigure("reached", figure.Count, figure.More, labels.With("until", j.Plan.Until), count)
	t.Recovery = []figure.Figure{
		newFigure("recovery", figure.Nanoseconds, figure.Less, labels.With("of", "removal"), removal),
		newFigure("recovery", figure.Nanoseconds, figure.Less, labels.With("of", "memory"), memory),
	}
	t.Recovery[0].Total = len(removal)
	t.Recovery[1].Failed, t.Recovery[1].Total = notBack, notBack+len(memory)
}

// Latencies are how long starts took, ns: until they were ready where that was asked for,
// else until the operation was done.
func Latencies(t *record.Target, samples []record.Sample) (all []float64) {
	for i := range samples {
		d, ok := samples[i].Latency(record.StampReady)
		if !ok {
			d, ok = samples[i].Latency(t.Operations["run"].Done)
		}
		if ok {
			all = append(all, float64(d))
		}
	}
	return all
}

// Slower is how many times as long starts take as the first ones of the same round did:
// the median of all ratios within a round, with the interval of the Mann–Whitney test.
func Slower(rounds ...stat.Samples) figure.Estimate {
	r := stat.RatioWithin(rounds, figure.Confidence)
	return figure.Estimate{N: r.N, Value: r.Value, Lo: r.Lo, Hi: r.Hi, Bounded: r.Known}
}

// slower compares the step with the first in the rounds that have both. Where a side is
// known as an upper bound only, their ratio is not.
func (s *Step) slower(first *Step) figure.Estimate {
	if s.Start.AtMost || first.Start.AtMost {
		return figure.Estimate{}
	}
	var rounds []stat.Samples
	for round, now := range s.starts {
		rounds = append(rounds, stat.Samples{Old: first.starts[round], New: now})
	}
	return Slower(rounds...)
}

// seen is what was seen in one step of one visit.
type seen struct {
	round, there int
	samples      []record.Sample
	starts       []float64
	failed       int
	books        *ledger.Ledger // nil: it was not read
}

// visited are the steps of one visit in their order, by how many were planned.
type stepKey struct {
	planned int
	last    bool
}

func (j *Judgement) steps(t *Target, visits []*ledger.Visit) {
	there := map[int]int{} // by round
	steps := map[stepKey][]*seen{}
	points := map[int][]stat.Point{}
	for i := range j.Record.Batches {
		b := &j.Record.Batches[i]
		if b.Target != t.Info.Name || b.Phase != record.PhaseMeasure {
			continue
		}
		s := &seen{round: b.Round, samples: b.Samples, starts: Latencies(&t.Info, b.Samples)}
		before := there[b.Round]
		there[b.Round] = before // of a round in which none began, too
		for k := range b.Samples {
			f := b.Samples[k].Failure
			if f == nil {
				there[b.Round]++
			} else if f.Kind != record.FailInterrupted {
				s.failed++
			}
		}
		j.Total += len(b.Samples)
		if !j.Until.Failure {
			j.Failed += s.failed
		}
		s.there = there[b.Round]
		if s.there > before { // else what is there was watched in the step before
			s.books = booksOf(visits, t.Info.Name, s, j.Record.Header.Environment.CPUs)
		}
		if s.books != nil {
			points[s.round] = append(points[s.round], stat.Point{X: float64(s.there), Y: float64(s.books.Node - s.books.Others)})
		}
		key := stepKey{b.Lanes, false}
		if s.there < b.Lanes {
			key = stepKey{0, true}
		}
		steps[key] = append(steps[key], s)
	}
	t.Visited = len(there)
	for key, all := range steps {
		st := newStep(t.Info.Name, key, all)
		if t.Visited == 1 { // of one round the starts themselves are the sample
			st.Start.Estimate = figure.MedianOf(slices.Concat(slices.Collect(maps.Values(st.starts))...))
		}
		t.Steps = append(t.Steps, st)
	}
	slices.SortFunc(t.Steps, func(a, b Step) int {
		switch {
		case a.Last:
			return 1
		case b.Last:
			return -1
		}
		return cmp.Compare(a.Sandboxes, b.Sandboxes)
	})
	for i := range t.Steps {
		s := &t.Steps[i]
		s.Times = newFigure("start-latency-times", figure.Ratio, figure.Less, s.Start.Labels, nil)
		if i > 0 {
			s.Times.Estimate = s.slower(&t.Steps[0])
		}
	}
	t.Segments = segments(t.Info.Name, points)
}

// booksOf are the ledger of the step's idle phase.
func booksOf(visits []*ledger.Visit, target string, s *seen, cpus int) *ledger.Ledger {
	for _, v := range visits {
		if v.Target != target || v.Round != s.round {
			continue
		}
		for i := range v.Phases {
			if p := &v.Phases[i]; p.Sandboxes == s.there && p.End != nil {
				if l, err := v.Close(i, cpus); err == nil {
					return &l
				}
			}
		}
	}
	return nil
}

// Charged is what one of the sandboxes of a reading has by itself of memory that does not
// give way: what its processes grew by since before them, and what its own cgroups are
// charged for beyond that. 0 where the reading does not tell.
func Charged(before, end *record.Reading) float64 {
	l, err := ledger.Close(before, nil, end)
	if err != nil || end.Sandboxes < 1 {
		return 0
	}
	var all int64
	for _, row := range l.Rows {
		if row.Role != record.RoleOthers && row.Role != record.RoleKernelNode {
			all += max(row.Memory.Sum(), 0) // a daemon that gave back does not make a sandbox cheaper
		}
	}
	return float64(all) / float64(end.Sandboxes)
}

func newStep(target string, key stepKey, all []*seen) Step {
	label, there := strconv.Itoa(key.planned), []float64{}
	if key.last {
		label = "last"
	}
	labels := figure.Of("target", target, "sandboxes", label)
	started := 0
	start, memory, cpu := stat.Rounds{}, stat.Rounds{}, stat.Rounds{}
	roles, failed := map[record.Role]stat.Rounds{}, 0
	st := Step{Sandboxes: key.planned, Last: key.last, starts: map[int][]float64{}}
	for _, s := range all {
		there = append(there, float64(s.there))
		st.starts[s.round] = append(st.starts[s.round], s.starts...)
		started += len(s.starts)
		failed += s.failed
		for i := range s.samples {
			st.asked(&s.samples[i])
		}
		if len(s.starts) > 0 {
			start[s.round] = figure.MedianOf(s.starts).Value
		}
		if s.books == nil || s.there == 0 {
			continue
		}
		n := float64(s.there)
		memory[s.round] = float64(s.books.Node-s.books.Others) / n
		for _, row := range s.books.Rows {
			if row.Role == record.RoleOthers || row.Role == record.RoleCache || !s.books.Complete {
				continue
			}
			if roles[row.Role] == nil {
				roles[row.Role] = stat.Rounds{}
			}
			roles[row.Role][s.round] = float64(row.Memory.Sum()) / n
		}
		if used, least := s.books.CPU(); !least && s.books.Complete {
			cpu[s.round] = used / n
		}
	}
	if key.last {
		st.Sandboxes = int(figure.MedianOf(there).Value)
	}
	st.Start = newFigure("start-latency", figure.Nanoseconds, figure.Less, labels, start)
	st.Start.Failed, st.Start.Total = failed, started+failed
	if st.atMost() {
		st.Start.AtMost, st.Start.Verdict = true, figure.AtMost
	}
	st.Memory = newFigure("memory-per-sandbox", figure.Bytes, figure.Less, labels.With("of", "node"), memory)
	st.CPU = newFigure("cpu-per-sandbox", figure.CPUs, figure.Less, labels, cpu)
	for _, role := range ledger.Roles {
		if roles[role] != nil {
			st.Roles = append(st.Roles, newFigure("memory-per-sandbox", figure.Bytes, figure.Less, labels.With("of", string(role)), roles[role]))
		}
	}
	return st
}

// asked counts how exactly it is known when a workload was ready.
func (s *Step) asked(of *record.Sample) {
	if of.Failure != nil || of.Polls == 0 || of.Ready == 0 {
		return
	}
	s.Asked++
	if d, ok := of.Resolution(); ok {
		s.Resolution = max(s.Resolution, float64(d))
	} else {
		s.AtMost++
	}
}

func (s *Step) atMost() bool { return s.AtMost > s.Asked/2 }

// AtMost tells whether most starts are known as upper bounds only: their workloads were
// ready when they were asked first.
func AtMost(samples []record.Sample) bool {
	var s Step
	for i := range samples {
		s.asked(&samples[i])
	}
	return s.atMost()
}

// leavings are what bore the id of a sandbox once all were removed: the most of any round.
func (j *Judgement) leavings(t *Target, visits []*ledger.Visit) {
	for _, of := range ledger.Leavings {
		left := stat.Rounds{}
		for _, v := range visits {
			if v.Target != t.Info.Name || v.After == nil || v.After.LeftBeside == nil {
				continue
			}
			if n, known := v.Left(of); known {
				left[v.Round] = n
			}
		}
		f := newFigure("left", figure.Count, figure.Less, figure.Of("target", t.Info.Name, "of", of), left)
		f.Estimate = figure.Most(left)
		t.Left = append(t.Left, f)
	}
}

// Figures are all of the run's.
func (j *Judgement) Figures() (all []figure.Figure) {
	for i := range j.Targets {
		t := &j.Targets[i]
		all = append(all, t.Count)
		for k := range t.Steps {
			s := &t.Steps[k]
			all = append(append(all, s.Start, s.Times, s.Memory), s.Roles...)
			all = append(all, s.CPU)
		}
		for _, s := range t.Segments {
			all = append(all, s.Slope)
		}
		all = append(append(all, t.Recovery...), t.Left...)
	}
	return slices.DeleteFunc(all, func(f figure.Figure) bool { return !f.Known() || math.IsNaN(f.Estimate.Value) })
}
