package density

import (
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

// Name is the instrument's verb, its key in a plan and its name in a record.
const Name = "density"

// PhaseIdle is the phase of readings with idle sandboxes.
const PhaseIdle = "idle"

// Judgement is the result of a density run: how many sandboxes fit on a node.
type Judgement struct {
	Record   *record.Record
	Plan     Options
	Until    Until
	Targets  []Target
	Findings []record.Finding
	Failed   int // failed starts, unless a failure was the goal
	Total    int
}

// Target is the result of one target.
type Target struct {
	Info    record.Target
	Trial   *record.Density   // nil: no trial
	Ends    []*record.Density // one per round
	All     figure.Set        // figures of a step have the label sandboxes
	Steps   []Step
	Visited int // rounds with steps
}

// Step is the result with a given number of sandboxes.
type Step struct {
	Sandboxes int        // as planned; the median for the last step
	Last      bool       // ended early, with a different number in each round
	All       figure.Set // subset of the target's figures
	seen      []*seen
}

func (s *Step) start() *figure.Figure { return s.All.Of("start-latency") }

// Result returns the failed and total starts, and the findings.
func (j *Judgement) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Findings
}

// Judge judges a record of a density run, complete or not.
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
		leavings(&t, visits)
		j.Targets = append(j.Targets, t)
	}
	j.find()
	return j, nil
}

// ends collects the end of each visit: the number of sandboxes reached, and the time
// until the machine recovered.
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
		case seen[d.Round] || d.Why == record.EndInterrupted: // a duplicate, or an interruption that is not the target's fault
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
	t.put("reached", figure.Median(count), count, "until", j.Plan.Until)
	t.put("recovery", figure.Median(removal), removal, "of", "removal").Total = len(removal)
	back := t.put("recovery", figure.Median(memory), memory, "of", "memory")
	back.Failed, back.Total = notBack, notBack+len(memory)
}

// Latencies returns the durations of starts, ns: until ready if readiness was
// requested, otherwise until the operation was done.
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

// Slower returns the ratio of start durations to those of the first step: the median
// of all ratios within a round, with the interval of the Mann–Whitney test.
func Slower(rounds ...stat.Samples) figure.Estimate {
	r := stat.RatioWithin(rounds, figure.Confidence)
	return figure.Estimate{N: r.N, Value: r.Value, Lo: r.Lo, Hi: r.Hi, Bounded: r.Known}
}

// slower compares a step's starts with those of the first step, in rounds that have
// both.
func slower(all, first []*seen) figure.Estimate {
	var rounds []stat.Samples
	for _, now := range all {
		for _, old := range first {
			if old.round == now.round {
				rounds = append(rounds, stat.Samples{Old: old.starts, New: now.starts})
			}
		}
	}
	return Slower(rounds...)
}

// seen is one step of one visit.
type seen struct {
	round, there int
	samples      []record.Sample
	starts       []float64
	failed       int
	books        *ledger.Ledger // nil: not read
}

// lastStep is the planned number of a step that ended early.
const lastStep = math.MaxInt

func (j *Judgement) steps(t *Target, visits []*ledger.Visit) {
	there := map[int]int{}     // number of sandboxes by round
	steps := map[int][]*seen{} // by planned number
	points := map[int][]stat.Point{}
	for i := range j.Record.Batches {
		b := &j.Record.Batches[i]
		if b.Target != t.Info.Name || b.Phase != record.PhaseMeasure {
			continue
		}
		s := &seen{round: b.Round, samples: b.Samples, starts: Latencies(&t.Info, b.Samples)}
		before := there[b.Round]
		there[b.Round] = before // also if no start began in the round
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
		if s.there > before { // otherwise the previous step observed the same sandboxes
			s.books = booksOf(visits, t.Info.Name, s, j.Record.Header.Environment.CPUs)
		}
		if s.books != nil {
			points[s.round] = append(points[s.round], stat.Point{X: float64(s.there), Y: float64(s.books.Node - s.books.Others)})
		}
		planned := b.Lanes
		if s.there < planned {
			planned = lastStep
		}
		steps[planned] = append(steps[planned], s)
	}
	t.Visited = len(there)
	order := slices.Sorted(maps.Keys(steps))
	for _, planned := range order {
		t.step(planned, steps[planned], steps[order[0]])
	}
	for i, part := range slices.DeleteFunc(t.All.Parts("sandboxes"), func(s figure.Set) bool { return s.Get("sandboxes") == "" }) {
		t.Steps[i].All = part
	}
	segments(t, points)
}

// booksOf returns the ledger of the step's idle phase, or nil.
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

// Charged returns the non-reclaimable memory of one sandbox: the growth of its
// processes, plus the charge of its own cgroups beyond that. It is 0 if the reading
// has no such data.
func Charged(before, end *record.Reading) float64 {
	l, err := ledger.Close(before, nil, end)
	if err != nil || end.Sandboxes < 1 {
		return 0
	}
	var all int64
	for _, row := range l.Rows {
		if row.Role != record.RoleOthers && row.Role != record.RoleKernelNode {
			all += max(row.Memory.Sum(), 0) // a shrinking daemon does not make sandboxes cheaper
		}
	}
	return float64(all) / float64(end.Sandboxes)
}

// step adds the figures of a step and its comparison with the first.
func (t *Target) step(planned int, all, first []*seen) {
	st, label := Step{Sandboxes: planned, seen: all}, strconv.Itoa(planned)
	var there, starts []float64
	start, memory, cpu := stat.Rounds{}, stat.Rounds{}, stat.Rounds{}
	roles, failed := map[record.Role]stat.Rounds{}, 0
	for _, s := range all {
		there, starts = append(there, float64(s.there)), append(starts, s.starts...)
		failed += s.failed
		if len(s.starts) > 0 {
			start[s.round] = figure.MedianOf(s.starts).Value
		}
		s.usage(memory, cpu, roles)
	}
	if planned == lastStep {
		st.Last, st.Sandboxes, label = true, int(figure.MedianOf(there).Value), "last"
	}
	t.Steps = append(t.Steps, st)
	put := func(quantity string, rounds stat.Rounds, more ...string) *figure.Figure {
		return t.put(quantity, figure.Median(rounds), rounds, append([]string{"sandboxes", label}, more...)...)
	}
	f := put("start-latency", start)
	f.Failed, f.Total = failed, len(starts)+failed
	if t.Visited == 1 { // with one round the starts are the sample
		f.Estimate = figure.MedianOf(starts)
	}
	bound := latest(all)
	if bound {
		f.AtMost, f.Verdict = true, figure.AtMost
	}
	times := put("start-latency-times", nil)
	if &all[0] != &first[0] && !bound && !latest(first) { // a ratio of bounds is unknown
		times.Estimate = slower(all, first)
	}
	put("memory-per-sandbox", memory, "of", "node")
	for _, role := range ledger.Roles {
		if roles[role] != nil {
			put("memory-per-sandbox", roles[role], "of", string(role))
		}
	}
	put("cpu-per-sandbox", cpu)
}

// usage adds the usage of one sandbox in the round: of the node's memory, of CPU time, and of
// memory by role.
func (s *seen) usage(memory, cpu stat.Rounds, roles map[record.Role]stat.Rounds) {
	if s.books == nil || s.there == 0 {
		return
	}
	n := float64(s.there)
	memory[s.round] = float64(s.books.Node-s.books.Others) / n
	if !s.books.Complete {
		return
	}
	for _, row := range s.books.Rows {
		if row.Role == record.RoleOthers || row.Role == record.RoleCache {
			continue
		}
		if roles[row.Role] == nil {
			roles[row.Role] = stat.Rounds{}
		}
		roles[row.Role][s.round] = float64(row.Memory.Sum()) / n
	}
	if used, least := s.books.CPU(); !least {
		cpu[s.round] = used / n
	}
}

// polled returns the precision of polled readiness: the worst resolution in ns, the
// number of workloads ready at the first poll, and the number polled. A workload ready
// at the first poll has only an upper bound.
func polled(all []*seen) (widest float64, atMost, asked int) {
	for _, s := range all {
		for i := range s.samples {
			of := &s.samples[i]
			if of.Failure != nil || of.Polls == 0 || of.Ready == 0 {
				continue
			}
			asked++
			if d, ok := of.Resolution(); ok {
				widest = max(widest, float64(d))
			} else {
				atMost++
			}
		}
	}
	return widest, atMost, asked
}

func latest(all []*seen) bool {
	_, atMost, asked := polled(all)
	return atMost > asked/2
}

// AtMost reports whether most starts have only an upper bound, because the workload
// was ready at the first poll.
func AtMost(samples []record.Sample) bool { return latest([]*seen{{samples: samples}}) }

// leavings sets what remained with a sandbox id after removal: the maximum over
// rounds.
func leavings(t *Target, visits []*ledger.Visit) {
	for _, of := range ledger.Leavings {
		left := stat.Rounds{}
		for _, v := range visits {
			if v.Target != t.Info.Name || v.After == nil || v.After.LeftBeside == nil {
				continue
			}
			if n, known := v.Left()[of]; known {
				left[v.Round] = n
			}
		}
		t.put("left", figure.Most(left), left, "of", of)
	}
}

// such returns the target's figures of a quantity.
func (t *Target) such(quantity string) (all []*figure.Figure) {
	for i := range t.All {
		if t.All[i].Quantity == quantity {
			all = append(all, &t.All[i])
		}
	}
	return all
}

// Figures returns all figures of the run.
func (j *Judgement) Figures() (all []figure.Figure) {
	for i := range j.Targets {
		all = append(all, j.Targets[i].All...)
	}
	return slices.DeleteFunc(all, func(f figure.Figure) bool { return !f.Known() || math.IsNaN(f.Estimate.Value) })
}
