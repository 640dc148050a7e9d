package bpf

import (
	"cmp"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// quotaPeriod is the kernel's default quota period, ns (kernel/sched/fair.c,
// default_cfs_period).
const quotaPeriod = 100e6

// quotaFacts are the measurements at one program weight, in one round or as medians
// over rounds. CPU times are shares of one core; NaN is unknown.
type quotaFacts struct {
	heavy             int64
	round             int // allRounds for medians over all rounds
	usage, ticks, bpf float64
	own               float64 // part of bpf spent in the clients' own calls; NaN if programs also run for others
	throttled         float64 // throttled share of the periods
	qps               float64
	rate              float64 // started requests per second
	each              float64 // charge per request, CPU seconds; in medians the maximum over rounds
	client            float64 // usage of the control, which may have no group
	node              float64 // busy share of the node
	edge              float64 // share of the limit by which a window can exceed it
}

// values returns all values that medians are computed of.
func (f *quotaFacts) values() []*float64 {
	return []*float64{&f.usage, &f.ticks, &f.bpf, &f.own, &f.throttled, &f.qps, &f.rate, &f.each, &f.client, &f.node, &f.edge}
}

// charged returns the usage charged to the cgroup. It is the larger of the known
// values, because cpuacct sometimes charges long kernel times to another task.
func (f *quotaFacts) charged() float64 { return most(f.usage, f.ticks) }

// taken returns the usage of the workload with the programs that ran in the clients'
// own calls.
func (f *quotaFacts) taken() float64 { return most(f.own, f.charged()) }

// most returns the largest known value, or NaN.
func most(values ...float64) float64 {
	out := math.NaN()
	for _, v := range values {
		if !(v <= out) && !math.IsNaN(v) {
			out = v
		}
	}
	return out
}

// allRounds is the round number of medians over all rounds.
const allRounds = -1

// quota determines whether the programs' time counts against the limit.
func (j *judging) quota() *Quota {
	q := &Quota{Limit: j.b.Plan.CPUs}
	steps, control := j.quotaSteps()
	all, free := medians(steps, allRounds), control.median(allRounds)
	for i, s := range steps {
		q.Shared = q.Shared || math.IsNaN(all[i].own) && stat.Finite(all[i].bpf)
		s.figures(q.Limit)
		q.Steps = append(q.Steps, *s)
	}
	asked := quotaQuestion{limit: q.Limit, loop: j.b.Plan.Datapath != ""}
	q.Verdict, q.Because = asked.verdict(all, free)
	if len(steps) == 0 {
		return q
	}
	last := steps[len(steps)-1]
	for i, f := range last.facts {
		if i > 0 && f.round == last.facts[i-1].round {
			continue
		}
		q.Rounds++
		if v, _ := asked.verdict(medians(steps, f.round), cmp.Or(control.median(f.round), free)); v == q.Verdict {
			q.Agree++
		}
	}
	return q
}

// quotaSteps returns the weights under the limit, lightest first. control is the
// heaviest weight without a limit, or nil if not measured.
func (j *judging) quotaSteps() (steps []*QuotaStep, control *QuotaStep) {
	var limited, free []quotaFacts
	kinds, reference := j.kinds(), j.b.Plan.Datapath != ""
	for _, asked := range j.asked {
		if asked.CPUs != 0 && math.Abs(asked.CPUs-j.b.Plan.CPUs) > 1e-9 {
			continue
		}
		for _, m := range j.measured[asked] {
			p := m.loaded()
			if p == nil || !m.statistics || asked.CPUs != 0 && p.Group == nil {
				continue
			}
			f := factsOf(m)
			if reference || forClients(m, kinds) {
				f.own = inCalls(m, kinds)
			}
			if asked.CPUs == 0 {
				free = append(free, f)
			} else {
				limited = append(limited, f)
			}
		}
	}
	steps = stepsOf(limited)
	for _, s := range stepsOf(free) {
		if len(steps) > 0 && s.Heavy == steps[len(steps)-1].Heavy {
			control = s
		}
	}
	return steps, control
}

// stepsOf merges points with different numbers of connections or services by weight,
// ordered by round.
func stepsOf(all []quotaFacts) (steps []*QuotaStep) {
	slices.SortStableFunc(all, func(a, b quotaFacts) int {
		return cmp.Or(cmp.Compare(a.heavy, b.heavy), cmp.Compare(a.round, b.round))
	})
	for _, f := range all {
		if n := len(steps); n == 0 || steps[n-1].Heavy != f.heavy {
			steps = append(steps, &QuotaStep{Heavy: f.heavy})
		}
		last := steps[len(steps)-1]
		last.facts = append(last.facts, f)
	}
	return steps
}

func factsOf(m *measured) quotaFacts {
	p, f := m.load, quotaFacts{heavy: m.load.Asked.Heavy, round: m.round}
	for _, v := range f.values() {
		*v = math.NaN()
	}
	took := m.took()
	f.edge = quotaPeriod / took
	f.bpf, f.client = m.bpfCore(), part(p.ClientCPU, took)
	f.node = min(part(p.NodeCPU, took*float64(p.CPUs)), 1) // ticks may add up to one per CPU
	if p.Sent != nil {
		f.qps, f.rate = p.Sent.QPS, float64(p.Sent.Requests)/took*1e9
	}
	if g := p.Group; g != nil {
		f.usage, f.ticks = float64(g.Usage)/took, part(g.Ticks, took)
		if g.Periods > 0 {
			f.throttled = float64(g.Throttled) / float64(g.Periods)
		}
	}
	if f.rate > 0 {
		f.each = f.charged() / f.rate
	}
	return f
}

func (s *QuotaStep) over(of func(*quotaFacts) float64) stat.Rounds {
	values := stat.Rounds{}
	for i := range s.facts {
		if v := of(&s.facts[i]); stat.Finite(v) {
			values[i] = v
		}
	}
	return values
}

// medians returns the medians of the steps with figures in the round.
func medians(steps []*QuotaStep, round int) (all []quotaFacts) {
	for _, s := range steps {
		if m := s.median(round); m != nil {
			all = append(all, *m)
		}
	}
	return all
}

// median returns the figures of a step in one round, or over [allRounds]. It returns
// nil if there are none.
func (s *QuotaStep) median(round int) *quotaFacts {
	if s == nil {
		return nil
	}
	in := &QuotaStep{facts: slices.DeleteFunc(slices.Clone(s.facts), func(f quotaFacts) bool { return round != allRounds && f.round != round })}
	if len(in.facts) == 0 {
		return nil
	}
	out := &quotaFacts{heavy: s.Heavy, round: allRounds}
	for i, to := range out.values() {
		*to = math.NaN()
		if e := figure.Median(in.over(func(f *quotaFacts) float64 { return *f.values()[i] })); e.Known() {
			*to = e.Value
		}
	}
	out.each = math.NaN()
	for _, f := range in.facts {
		if out.each = most(out.each, f.each); stat.Finite(f.bpf) && !stat.Finite(f.own) {
			out.own = math.NaN() // one round with runs for other processes is enough
		}
	}
	return out
}

// figures sets the figures of the step.
func (s *QuotaStep) figures(limit float64) {
	labels := labelsOf(&record.Asked{Heavy: s.Heavy, CPUs: limit})
	if s.Heavy == 0 {
		labels = labels.With("heavy", "0")
	}
	of := func(quantity string, value func(*quotaFacts) float64) figure.Figure {
		f := Quantities.Over(quantity, labels, s.over(value))
		f.Rounds = nil
		for i := range s.facts {
			if v := value(&s.facts[i]); stat.Finite(v) && (len(f.Rounds) == 0 || f.Rounds[len(f.Rounds)-1].Round < s.facts[i].round) {
				f.Rounds = append(f.Rounds, figure.Round{Round: s.facts[i].round, Value: v})
			}
		}
		return f
	}
	s.Usage = of("quota-usage", func(f *quotaFacts) float64 { return f.usage })
	s.Ticks = of("quota-usage-by-tick", func(f *quotaFacts) float64 { return f.ticks })
	s.BPF = of("quota-bpf", func(f *quotaFacts) float64 { return f.bpf })
	s.Workload = of("quota-workload", func(f *quotaFacts) float64 {
		if f.usage < f.bpf || math.IsNaN(f.own) {
			return math.NaN() // misaccounted or spent for other processes: unknown
		}
		return f.usage - f.bpf
	})
	s.Throttled = of("quota-throttled", func(f *quotaFacts) float64 { return f.throttled })
	s.QPS = of("quota-requests", func(f *quotaFacts) float64 { return f.qps })
}

// misbooked returns the facts of an inconsistent step. Either the cgroup was charged
// less than its programs ran (below), or clock and ticks disagree.
func (s *QuotaStep) misbooked(limit float64) (f *quotaFacts, below bool) {
	for i := range s.facts {
		if f := &s.facts[i]; f.own > (1+quotaSlack)*f.usage && f.own > quotaSlack*limit {
			return f, true
		}
	}
	for i := range s.facts {
		if f := &s.facts[i]; math.Abs(f.ticks-f.usage) > quotaSlack*max(f.usage, f.ticks, limit) {
			return f, false
		}
	}
	return nil, false
}
