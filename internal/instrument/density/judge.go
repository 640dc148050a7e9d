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
	Info    record.Target
	Trial   *record.Density   // nil: there was none
	Ends    []*record.Density // one a round
	All     figure.Set        // those of a step are a part by sandboxes
	Steps   []Step
	Visited int // rounds that have steps
}

// Step is what was seen with so many sandboxes.
type Step struct {
	Sandboxes int        // as planned; of the last its median
	Last      bool       // it ended in its midst, in each round with as many as there were then
	All       figure.Set // of the target's
	seen      []*seen
}

func (s *Step) start() *figure.Figure { return s.All.Of("start-latency") }

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
		leavings(&t, visits)
		j.Targets = append(j.Targets, t)
	}
	j.find()
	return j, nil
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
	t.put("reached", figure.Median(count), count, "until", j.Plan.Until)
	t.put("recovery", figure.Median(removal), removal, "of", "removal").Total = len(removal)
	back := t.put("recovery", figure.Median(memory), memory, "of", "memory")
	back.Failed, back.Total = notBack, notBack+len(memory)
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

// slower compares starts of a step with those of the first in the rounds that have both.
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
	keys := slices.SortedFunc(maps.Keys(steps), func(a, b stepKey) int {
		return cmp.Or(cmp.Compare(strconv.FormatBool(a.last), strconv.FormatBool(b.last)), cmp.Compare(a.planned, b.planned))
	})
	for _, key := range keys {
		t.step(key, steps[key], steps[keys[0]])
	}
	for i, part := range slices.DeleteFunc(t.All.Parts("sandboxes"), func(s figure.Set) bool { return s.Get("sandboxes") == "" }) {
		t.Steps[i].All = part
	}
	segments(t, points)
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

// step appends what was seen in one, and how it compares with the first.
func (t *Target) step(key stepKey, all, first []*seen) {
	label, there := strconv.Itoa(key.planned), []float64{}
	if key.last {
		label = "last"
	}
	start, memory, cpu := stat.Rounds{}, stat.Rounds{}, stat.Rounds{}
	roles, failed, starts := map[record.Role]stat.Rounds{}, 0, []float64(nil)
	for _, s := range all {
		there, starts = append(there, float64(s.there)), append(starts, s.starts...)
		failed += s.failed
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
	st := Step{Sandboxes: key.planned, Last: key.last, seen: all}
	if key.last {
		st.Sandboxes = int(figure.MedianOf(there).Value)
	}
	t.Steps = append(t.Steps, st)
	put := func(quantity string, rounds stat.Rounds, more ...string) *figure.Figure {
		return t.put(quantity, figure.Median(rounds), rounds, append([]string{"sandboxes", label}, more...)...)
	}
	f := put("start-latency", start)
	f.Failed, f.Total = failed, len(starts)+failed
	if t.Visited == 1 { // of one round the starts themselves are the sample
		f.Estimate = figure.MedianOf(starts)
	}
	bound := latest(all)
	if bound {
		f.AtMost, f.Verdict = true, figure.AtMost
	}
	times := put("start-latency-times", nil)
	if &all[0] != &first[0] && !bound && !latest(first) { // of a side that is a bound their ratio is not known
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

// polled is how exactly it is known when workloads were ready that were asked: to how many
// ns at worst, and how many were ready when they were asked first, so that their times are the
// latest that can be.
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

// AtMost reports whether most starts are known as upper bounds only: their workloads were
// ready when they were asked first.
func AtMost(samples []record.Sample) bool { return latest([]*seen{{samples: samples}}) }

// leavings are what bore the id of a sandbox once all were removed: the most of any round.
func leavings(t *Target, visits []*ledger.Visit) {
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
		t.put("left", figure.Most(left), left, "of", of)
	}
}

// such are the target's figures of a quantity.
func (t *Target) such(quantity string) (all []*figure.Figure) {
	for i := range t.All {
		if t.All[i].Quantity == quantity {
			all = append(all, &t.All[i])
		}
	}
	return all
}

// Figures are all of the run's.
func (j *Judgement) Figures() (all []figure.Figure) {
	for i := range j.Targets {
		all = append(all, j.Targets[i].All...)
	}
	return slices.DeleteFunc(all, func(f figure.Figure) bool { return !f.Known() || math.IsNaN(f.Estimate.Value) })
}
